#include "learn/general/attention_policy.h"

#include <utility>

#include "learn/encoders/graph_sage.h"
#include "learn/nn/device_scores.h"
#include "learn/policies/independent.h"
#include "learn/policies/neighbourhoods.h"
#include "learn/policies/segment_attention_net.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kSageLayers = 3;
constexpr std::int64_t kSegment = 64;
constexpr std::int64_t kHeads = 2;
constexpr double kPull = 6;

class GeneralAttentionPolicy final : public GeneralPolicy {
 public:
  GeneralAttentionPolicy(UnitGraph units, const GeneralNetwork& network, torch::Device device,
                         Rng& rng, std::int64_t neighbourhoods)
      : GeneralPolicy(device),
        units_(std::move(units)),
        views_(units_),
        features_(to_tensor(views_.unit_features(), device)),
        neighbourhoods_(neighbourhoods_of(units_, neighbourhoods, device), kPull),
        sage_(parameters_, "sage", both_directions(units_),
              features_.size(1) + DeviceView::kGraphColumns, network.width, kSageLayers, rng),
        attention_(parameters_, "attention", network.width, network.width,
                   {.width = network.width,
                    .heads = kHeads,
                    .layers = network.layers,
                    .segment = kSegment,
                    .superposition = network.superposition},
                   rng),
        scores_(parameters_, "scores", network.width, network.width, 0, rng) {
    use(views_.of(views_.fastest(units_.num_devices())));
  }

  const DeviceViews& views() const override { return views_; }
  void use(const DeviceView& view) override {
    devices_ = DeviceTensors(view, units_.size(), parameters_.device());
    inputs_ = torch::cat({features_, devices_.graph.expand({features_.size(0), -1})}, 1);
  }

  using GeneralPolicy::likeliest;
  Samples likeliest(const torch::Tensor& leanings) override {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor given = logits();
    std::vector<torch::Tensor> actions, log_probs;
    for (const torch::Tensor& leaning : leanings.to(given.device()).unbind(0)) {
      Samples one = neighbourhoods_.likeliest(given + leaning, devices_.mask);
      actions.push_back(one.actions);
      log_probs.push_back(one.log_probs);
    }
    return {.actions = torch::cat(actions), .log_probs = torch::cat(log_probs)};
  }
  Samples sample(std::int64_t count, Rng& rng) override {
    const torch::NoGradGuard no_gradients;
    return neighbourhoods_.sample(logits(), devices_.mask, count, rng);
  }
  Samples redraw(const Placement& placement, const torch::Tensor& open,
                 const torch::Tensor& leanings, Rng& rng) override {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor masks =
        closed_but_for(open, devices_.mask, unit_actions(units_, placement, parameters_.device()));
    const torch::Tensor leaning = leanings.to(parameters_.device());
    const torch::Tensor given = logits();
    std::vector<torch::Tensor> actions, log_probs;
    for (std::int64_t i = 0; i < masks.size(0); ++i) {
      const Samples one = neighbourhoods_.sample(given + leaning[i], masks[i], 1, rng);
      actions.push_back(one.actions);
      log_probs.push_back(one.log_probs);
    }
    return {.actions = torch::cat(actions),
            .log_probs = torch::cat(log_probs),
            .context = {masks, leaning}};
  }
  Scores score(const Samples& samples) override {
    if (samples.context.empty()) return neighbourhoods_.score(logits(), devices_.mask, samples);
    return score_redrawn(samples);
  }
  Placement placement(const Samples& samples, std::int64_t index) const override {
    return unit_placement(units_, neighbourhoods_.unit_actions(samples.actions), index);
  }
  Samples actions_for(const Placement& placement) override {
    Samples samples;
    samples.actions = neighbourhoods_.actions_for(
        unit_actions(units_, placement, parameters_.device()), units_.num_devices());
    return samples;
  }

 private:
  // Each under its own mask and leaning.
  Scores score_redrawn(const Samples& samples) const {
    const torch::Tensor given = logits();
    std::vector<torch::Tensor> log_probs, entropies;
    std::vector<std::vector<torch::Tensor>> distributions(2);  // neighbourhoods', units'
    for (std::int64_t i = 0; i < samples.size(); ++i) {
      const Samples one = samples.slice(i, 1);
      Scores scores = neighbourhoods_.score(given + one.context[1][0], one.context[0][0], one);
      log_probs.push_back(scores.log_probs);
      entropies.push_back(scores.entropy);
      for (std::size_t part = 0; part < distributions.size(); ++part) {
        distributions[part].push_back(scores.distributions[part]);
      }
    }
    Scores all;
    all.log_probs = torch::cat(log_probs);
    all.entropy = torch::stack(entropies).mean();
    for (const auto& part : distributions) all.distributions.push_back(torch::cat(part));
    return all;
  }
  torch::Tensor logits() const {
    return scores_(attention_(sage_(inputs_)), devices_.devices, devices_.pairs);
  }

  UnitGraph units_;
  DeviceViews views_;
  torch::Tensor features_;
  Neighbourhoods neighbourhoods_;
  GraphSage sage_;
  SegmentAttention attention_;
  DeviceScores scores_;
  DeviceTensors devices_;
  torch::Tensor inputs_;  // features, and what is the same for all units
};

}  // namespace

GeneralPolicyPtr general_attention_policy(UnitGraph units, const GeneralNetwork& network,
                                          const std::string& device, Rng& rng,
                                          std::int64_t neighbourhoods) {
  return std::make_shared<GeneralAttentionPolicy>(std::move(units), network, torch::Device(device),
                                                  rng, neighbourhoods);
}

}  // namespace emplace::learn
