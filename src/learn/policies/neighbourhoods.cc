#include "learn/policies/neighbourhoods.h"

#include <utility>

namespace emplace::learn {

Neighbourhoods::Neighbourhoods(torch::Tensor of_unit, double pull)
    : of_unit_(std::move(of_unit)), pull_(pull) {
  const torch::Tensor sizes = torch::bincount(of_unit_);
  count_ = sizes.size(0);
  sizes_ = sizes.clamp_min(1).to(torch::kFloat).unsqueeze(1);
}

torch::Tensor Neighbourhoods::of_neighbourhoods(const torch::Tensor& logits,
                                                const torch::Tensor& mask) const {
  const torch::Tensor zeros = torch::zeros({count_, logits.size(1)}, logits.options());
  const torch::Tensor mean = zeros.index_add(0, of_unit_, logits) / sizes_;
  const torch::Tensor any = zeros.index_add(0, of_unit_, (mask >= 0).to(logits.scalar_type()));
  // Where no unit may be: as the units' own mask has it.
  return torch::log_softmax(mean + torch::where(any > 0, zeros, zeros + mask.min()), -1);
}

torch::Tensor Neighbourhoods::of_units(const torch::Tensor& masked_logits) const {
  const torch::Tensor pulls = pull_ * torch::eye(masked_logits.size(1), masked_logits.options());
  return torch::log_softmax(masked_logits.unsqueeze(1) + pulls, -1).flatten(1);
}

torch::Tensor Neighbourhoods::by_unit(const torch::Tensor& decisions) const {
  return decisions.index_select(1, of_unit_);
}

Samples Neighbourhoods::followed(const torch::Tensor& units, const torch::Tensor& leaders,
                                 const torch::Tensor& leader_log_probs,
                                 const torch::Tensor& uniform) const {
  const std::int64_t devices = leader_log_probs.size(-1);
  const torch::Tensor rows = torch::arange(units.size(0), of_unit_.options()) * devices;
  // [samples, units, devices]: what each may do, given its neighbourhood's device.
  const torch::Tensor given = units.view({-1, devices})
                                  .index_select(0, (rows + by_unit(leaders)).flatten())
                                  .view({leaders.size(0), units.size(0), devices});
  const torch::Tensor own = uniform.defined() ? draw(given, uniform) : given.argmax(-1);
  return {.actions = torch::cat({leaders, own}, 1),
          .log_probs =
              torch::cat({log_prob_of(leader_log_probs, leaders), log_prob_of(given, own)}, 1)};
}

Samples Neighbourhoods::sample(const torch::Tensor& logits, const torch::Tensor& mask,
                               std::int64_t count, Rng& rng) const {
  const torch::Tensor all = of_neighbourhoods(logits, mask).unsqueeze(0).expand({count, -1, -1});
  const torch::Tensor leaders = draw(all, uniforms({count, count_}, rng));
  return followed(of_units(logits + mask), leaders, all, uniforms({count, logits.size(0)}, rng));
}

Samples Neighbourhoods::likeliest(const torch::Tensor& logits, const torch::Tensor& mask) const {
  const torch::Tensor all = of_neighbourhoods(logits, mask).unsqueeze(0);
  return followed(of_units(logits + mask), all.argmax(-1), all, {});
}

Scores Neighbourhoods::score(const torch::Tensor& logits, const torch::Tensor& mask,
                             const Samples& samples) const {
  const std::int64_t devices = logits.size(1);
  const torch::Tensor masked = logits + mask;
  const torch::Tensor leaders = samples.actions.narrow(1, 0, count_);
  const torch::Tensor of_leaders = of_neighbourhoods(logits, mask).unsqueeze(0);
  const torch::Tensor given = of_units(masked).unsqueeze(0).expand({samples.size(), -1, -1});
  const torch::Tensor index = by_unit(leaders) * devices + unit_actions(samples.actions);
  Scores scores;
  scores.log_probs = torch::cat({log_prob_of(of_leaders.expand({samples.size(), -1, -1}), leaders),
                                 log_prob_of(given, index)},
                                1);
  const torch::Tensor alone = torch::log_softmax(masked, -1);
  scores.entropy = mean_entropy(alone);
  scores.distributions = {of_leaders, alone.unsqueeze(0)};
  return scores;
}

torch::Tensor Neighbourhoods::unit_actions(const torch::Tensor& actions) const {
  return actions.narrow(1, count_, actions.size(1) - count_);
}

torch::Tensor Neighbourhoods::actions_for(const torch::Tensor& units, std::int64_t devices) const {
  const torch::Tensor votes =
      torch::zeros({count_, devices}, sizes_.options())
          .index_add(0, of_unit_,
                     torch::one_hot(units.select(0, 0), devices).to(sizes_.scalar_type()));
  return torch::cat({votes.argmax(-1).unsqueeze(0), units}, 1);
}

}  // namespace emplace::learn
