// HDP (Mirhoseini et al. 2018): samples and scores a group for every unit and a device for every
// group that has units.
//
// Samples that share a grouping are scored together: the placer's inputs depend on the grouping
// alone. Invariant: a sample's log-probabilities are the same when it is drawn and when it is
// scored again, so all that they depend on (grouping, noise) is kept in its context. A group
// without units is on the first device with probability 1: it has log-probability 0, no gradient
// and no entropy, so that sums over all groups are those over the groups in use. The gradient is
// exact for given samples; learners make an estimate of it (learn/learners/learner.h).
//
// For U units, G groups and S samples in B groupings: O(U G) for the grouper, O(B G^2 W + S G W^2)
// for the placer of width W.
#include "learn/policies/grouper_placer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "base/check.h"

#include "learn/policies/grouper.h"
#include "learn/policies/policy.h"
#include "learn/policies/seq2seq_net.h"
#include "learn/units/group_embedding.h"

namespace emplace::learn {
namespace {

constexpr float kForbidden = -1e9F;
// Of the context of samples: which of the batch's groupings each has [samples]; then, where there
// is noise, the grouper's, which one round shares [1, units, groups], and the placer's [samples,
// groups, devices].
constexpr std::size_t kGrouping = 0;
constexpr std::size_t kGrouperNoise = 1;
constexpr std::size_t kPlacerNoise = 2;

std::int64_t number_of_groups(const UnitGraph& units, std::int64_t wanted) {
  const std::int64_t usual = std::min<std::int64_t>(256, 20 * units.num_devices());
  return std::min<std::int64_t>(wanted > 0 ? wanted : usual, units.size());
}

// The logit of the previous group's device at which about `blocks` groups are not where the one
// before is; 0 blocks: 0.
double repeat_for(double blocks, std::int64_t groups, DeviceId devices) {
  if (blocks <= 0) return 0;
  const double others = std::max(1.0, static_cast<double>(devices) - 1);
  return std::log(std::max(1.0, others * (static_cast<double>(groups) / blocks - 1)));
}

// For every device all of them, those with the quickest link from it first, itself before all.
std::vector<std::vector<DeviceId>> by_distance(const Cluster& cluster) {
  constexpr Bytes kTypical = 1 << 20;
  std::vector<std::vector<DeviceId>> result;
  for (DeviceId from = 0; from < cluster.num_devices(); ++from) {
    std::vector<Nanoseconds> distance(cluster.num_devices(), 0);
    for (DeviceId to = 0; to < cluster.num_devices(); ++to) {
      if (to == from) continue;
      const Link* link = cluster.link(from, to);
      distance[to] = link != nullptr ? 1 + transfer_time(*link, kTypical)
                                     : std::numeric_limits<Nanoseconds>::max();
    }
    std::vector<DeviceId>& order = result.emplace_back(cluster.num_devices());
    std::iota(order.begin(), order.end(), DeviceId{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](DeviceId a, DeviceId b) { return distance[a] < distance[b]; });
  }
  return result;
}

// Units in a row on one device are a group; where there are more than `groups` of these, those of
// one device that follow each other are one, in proportion.
std::vector<std::int64_t> groups_of_runs(const std::vector<DeviceId>& device_of_unit,
                                         DeviceId devices, std::int64_t groups) {
  std::vector<std::int64_t> run_of_unit;       // among the runs of its device
  std::vector<std::int64_t> runs(devices, 0);  // by device
  for (std::size_t unit = 0; unit < device_of_unit.size(); ++unit) {
    const DeviceId device = device_of_unit[unit];
    if (unit == 0 || device_of_unit[unit - 1] != device) ++runs[device];
    run_of_unit.push_back(runs[device] - 1);
  }
  const std::int64_t total = std::accumulate(runs.begin(), runs.end(), std::int64_t{0});
  std::vector<std::int64_t> first(devices, 0);
  std::vector<std::int64_t> share(runs);
  for (DeviceId device = 0; device < devices; ++device) {
    if (total > groups && runs[device] > 0) {
      share[device] = std::max<std::int64_t>(1, runs[device] * (groups - devices) / total);
    }
    if (device > 0) first[device] = first[device - 1] + share[device - 1];
  }
  std::vector<std::int64_t> result;
  for (std::size_t unit = 0; unit < device_of_unit.size(); ++unit) {
    const DeviceId device = device_of_unit[unit];
    const std::int64_t within = run_of_unit[unit] * share[device] / runs[device];
    result.push_back((first[device] + within) % groups);
  }
  return result;
}

class GrouperPlacer final : public Policy {
 public:
  GrouperPlacer(UnitGraph units, const GrouperPlacerSettings& settings, torch::Device device,
                Rng& rng)
      : Policy(device),
        units_(std::move(units)),
        settings_(settings),
        embedding_(units_, number_of_groups(units_, settings.groups)),
        by_distance_(by_distance(units_.problem().cluster())),
        grouper_(parameters_, units_, embedding_.groups(), settings, rng),
        placer_(parameters_, "placer", embedding_.width(), units_.num_devices(),
                {.width = settings.width,
                 .bidirectional = true,
                 .decoder_sees_memory = settings.decoder_sees_group,
                 .tanh_constant = settings.tanh_constant,
                 .temperature = settings.temperature,
                 .repeat = repeat_for(settings.blocks, embedding_.groups(), units_.num_devices())},
                rng) {}

  void begin_round(std::int64_t round) override { noisy_ = round < settings_.noisy_rounds; }
  std::int64_t shards() const override { return settings_.shards; }
  Samples sample(std::int64_t count, Rng& rng) override;
  Scores score(const Samples& samples) override;
  Placement placement(const Samples& samples, std::int64_t index) const override;
  Samples actions_for(const Placement& placement) override;
  void describe(const Samples& samples, TrainingPoint& point) override;

 private:
  // What the placer needs of one grouping.
  struct Inputs {
    torch::Tensor groups;  // int64: those that have units, in the order of the rows
    torch::Tensor values;  // [steps, width of the embedding]
    torch::Tensor mask;    // [steps, devices]
  };
  Inputs inputs_of(const torch::Tensor& group_of_unit) const;
  // From the grouper's logits.
  static torch::Tensor group_distributions(const torch::Tensor& logits, const Samples& samples);
  void sample_devices(Samples& samples, std::int64_t first, std::int64_t count, Rng& rng) const;
  // Of samples with one grouping: [samples, groups, devices], and the steps that the placer took.
  torch::Tensor device_distributions(const Samples& samples, std::int64_t& steps) const;
  // Distributions of all groups from those of `inputs.groups`.
  torch::Tensor with_empty_groups(const Inputs& inputs, const torch::Tensor& distributions) const;

  std::int64_t units() const { return static_cast<std::int64_t>(units_.size()); }
  std::int64_t groups() const { return embedding_.groups(); }
  std::int64_t devices() const { return static_cast<std::int64_t>(units_.num_devices()); }
  torch::Device device() const { return parameters_.device(); }

  UnitGraph units_;
  GrouperPlacerSettings settings_;
  GroupEmbedding embedding_;
  std::vector<std::vector<DeviceId>> by_distance_;
  Grouper grouper_;
  Seq2Seq placer_;
  bool noisy_ = false;
  torch::Tensor likeliest_;  // int64: by unit, its group when the last samples were drawn
};

GrouperPlacer::Inputs GrouperPlacer::inputs_of(const torch::Tensor& group_of_unit) const {
  const torch::Tensor on_cpu = group_of_unit.to(torch::kCPU).contiguous();
  const EmbeddedGroups embedded =
      embedding_({on_cpu.data_ptr<std::int64_t>(), static_cast<std::size_t>(units())});
  const auto steps = static_cast<std::int64_t>(embedded.groups.size());
  torch::Tensor mask = torch::empty({steps, devices()}, torch::kFloat32);
  std::transform(embedded.allowed.begin(), embedded.allowed.end(), mask.data_ptr<float>(),
                 [](std::uint8_t allowed) { return allowed != 0 ? 0 : kForbidden; });
  return {.groups = to_tensor(embedded.groups, device()),
          .values = to_tensor(embedded.values, device()),
          .mask = mask.to(device())};
}

// [1, units, groups]: without noise, or with a round's, they are the same for all samples.
torch::Tensor GrouperPlacer::group_distributions(const torch::Tensor& logits,
                                                 const Samples& samples) {
  const bool noisy =
      samples.context.size() > kGrouperNoise && samples.context[kGrouperNoise].numel() > 0;
  const torch::Tensor whole = logits.unsqueeze(0);
  return torch::log_softmax(noisy ? whole + samples.context[kGrouperNoise] : whole, 2);
}

torch::Tensor GrouperPlacer::with_empty_groups(const Inputs& inputs,
                                               const torch::Tensor& distributions) const {
  torch::Tensor certain = torch::full({distributions.size(0), groups(), devices()}, kForbidden,
                                      distributions.options().requires_grad(false));
  certain.select(2, 0).zero_();
  return certain.index_copy(1, inputs.groups, distributions);
}

Samples GrouperPlacer::sample(std::int64_t count, Rng& rng) {
  const torch::NoGradGuard no_gradients;
  const torch::TensorOptions integers = torch::TensorOptions(torch::kInt64).device(device());
  const torch::TensorOptions reals = torch::TensorOptions(torch::kFloat32).device(device());
  Samples result;
  result.actions = torch::zeros({count, units() + groups()}, integers);
  result.log_probs = torch::zeros({count, units() + groups()}, reals);
  const std::int64_t together = settings_.share_grouping;
  result.context.push_back(torch::arange(count, integers).floor_divide(together));
  const torch::Tensor logits = grouper_.logits();
  likeliest_ = logits.argmax(1);
  if (noisy_) {
    torch::Tensor grouper_noise = torch::empty({1, 0});
    if (grouper_.noisy()) {
      const double scale = logits.square().mean().sqrt().item<double>();
      grouper_noise = settings_.noise * scale * normals({1, units(), groups()}, rng);
    }
    result.context.push_back(grouper_noise.to(device()));
    result.context.push_back(
        (settings_.noise * normals({count, groups(), devices()}, rng)).to(device()));
  }
  const torch::Tensor distributions = group_distributions(logits, result).squeeze(0);
  for (std::int64_t first = 0; first < count; first += together) {
    const std::int64_t here = std::min(together, count - first);
    const torch::Tensor drawn = draw(distributions, uniforms({units()}, rng));
    result.actions.narrow(0, first, here).narrow(1, 0, units()).copy_(drawn);
    result.log_probs.narrow(0, first, here)
        .narrow(1, 0, units())
        .copy_(log_prob_of(distributions, drawn));
    sample_devices(result, first, here, rng);
  }
  return result;
}

void GrouperPlacer::sample_devices(Samples& samples, std::int64_t first, std::int64_t count,
                                   Rng& rng) const {
  const Inputs inputs = inputs_of(samples.actions[first].narrow(0, 0, units()));
  torch::Tensor noise;
  if (samples.context.size() > kPlacerNoise) {
    noise = samples.context[kPlacerNoise].narrow(0, first, count).index_select(1, inputs.groups);
  }
  const torch::Tensor uniform = uniforms({count, inputs.groups.size(0)}, rng).to(device());
  const Seq2Seq::Decoded decoded = placer_.sample(inputs.values, inputs.mask, uniform, noise);
  samples.actions.narrow(0, first, count)
      .narrow(1, units(), groups())
      .index_copy_(1, inputs.groups, decoded.actions);
  samples.log_probs.narrow(0, first, count)
      .narrow(1, units(), groups())
      .index_copy_(1, inputs.groups, log_prob_of(decoded.distributions, decoded.actions));
}

torch::Tensor GrouperPlacer::device_distributions(const Samples& samples,
                                                  std::int64_t& steps) const {
  const Inputs inputs = inputs_of(samples.actions[0].narrow(0, 0, units()));
  torch::Tensor noise;
  if (samples.context.size() > kPlacerNoise) {
    noise = samples.context[kPlacerNoise].index_select(1, inputs.groups);
  }
  const torch::Tensor actions =
      samples.actions.narrow(1, units(), groups()).index_select(1, inputs.groups);
  steps = inputs.groups.size(0);
  return with_empty_groups(inputs, placer_.score(inputs.values, inputs.mask, actions, noise));
}

Scores GrouperPlacer::score(const Samples& samples) {
  const torch::Tensor by_unit = group_distributions(grouper_.logits(), samples);
  const torch::Tensor unit_entropies = -(by_unit.exp() * by_unit).sum();
  const torch::Tensor groupings = samples.context[kGrouping].to(torch::kCPU).contiguous();
  const std::int64_t* grouping = groupings.data_ptr<std::int64_t>();
  std::vector<torch::Tensor> unit_log_probs;
  std::vector<torch::Tensor> by_group;
  torch::Tensor entropy = torch::zeros({}, by_unit.options().requires_grad(false));
  for (std::int64_t first = 0, end = 0; first < samples.size(); first = end) {
    while (end < samples.size() && grouping[end] == grouping[first]) ++end;
    const std::int64_t count = end - first;
    const torch::Tensor units_of_one = samples.actions[first].narrow(0, 0, units());
    unit_log_probs.push_back(
        log_prob_of(by_unit.squeeze(0), units_of_one).unsqueeze(0).expand({count, units()}));
    std::int64_t steps = 0;
    by_group.push_back(device_distributions(samples.slice(first, count), steps));
    const torch::Tensor group_entropies =
        -(by_group.back().exp() * by_group.back()).sum() / static_cast<double>(count);
    const double share = static_cast<double>(count) / static_cast<double>(samples.size());
    entropy =
        entropy + share * (unit_entropies + group_entropies) / static_cast<double>(units() + steps);
  }
  const torch::Tensor devices_of_groups = torch::cat(by_group, 0);
  const torch::Tensor group_log_probs =
      log_prob_of(devices_of_groups, samples.actions.narrow(1, units(), groups()));
  return {.log_probs = torch::cat({torch::cat(unit_log_probs, 0), group_log_probs}, 1),
          .entropy = entropy,
          .distributions = {by_unit, devices_of_groups}};
}

Placement GrouperPlacer::placement(const Samples& samples, std::int64_t index) const {
  const torch::Tensor row = samples.actions[index].to(torch::kCPU).contiguous();
  const std::int64_t* group_of_unit = row.data_ptr<std::int64_t>();
  const std::int64_t* device_of_group = group_of_unit + units();
  std::vector<DeviceId> device_of_unit(units_.size());
  for (UnitId unit = 0; unit < units_.size(); ++unit) {
    const auto wanted = static_cast<std::size_t>(device_of_group[group_of_unit[unit]]);
    const std::vector<DeviceId>& order = by_distance_[wanted];
    device_of_unit[unit] = *std::find_if(
        order.begin(), order.end(), [&](DeviceId device) { return units_.allowed(unit, device); });
  }
  return units_.expand(device_of_unit);
}

Samples GrouperPlacer::actions_for(const Placement& placement) {
  const std::vector<DeviceId> device_of_unit = units_.contract(placement);
  std::vector<std::int64_t> actions =
      groups_of_runs(device_of_unit, units_.num_devices(), groups());
  std::vector<std::int64_t> votes(static_cast<std::size_t>(groups() * devices()), 0);
  for (UnitId unit = 0; unit < units_.size(); ++unit) {
    ++votes[static_cast<std::size_t>(actions[unit] * devices() + device_of_unit[unit])];
  }
  for (std::int64_t group = 0; group < groups(); ++group) {
    const auto first = votes.begin() + group * devices();
    actions.push_back(std::max_element(first, first + devices()) - first);
  }
  Samples result;
  result.actions = to_tensor(actions, device()).unsqueeze(0);
  result.context.push_back(torch::zeros({1}, result.actions.options()));
  const torch::NoGradGuard no_gradients;
  result.log_probs = score(result).log_probs;
  return result;
}

void GrouperPlacer::describe(const Samples& samples, TrainingPoint& point) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor changed = grouper_.logits().argmax(1) != likeliest_;
  point.groups_changed = changed.to(torch::kFloat64).mean().item<double>();
  double used = 0;
  std::int64_t groupings = 0;
  for (std::int64_t i = 0; i < samples.size(); i += settings_.share_grouping, ++groupings) {
    const torch::Tensor group_of_unit = samples.actions[i].narrow(0, 0, units());
    used += static_cast<double>((torch::bincount(group_of_unit) > 0).sum().item<std::int64_t>());
  }
  point.groups_used = used / static_cast<double>(groupings);
}

}  // namespace

PolicyPtr grouper_placer_policy(UnitGraph units, const GrouperPlacerSettings& settings,
                                const std::string& device, Rng& rng) {
  EMPLACE_CHECK(settings.share_grouping > 0);
  return std::make_shared<GrouperPlacer>(std::move(units), settings, torch::Device(device), rng);
}

}  // namespace emplace::learn
