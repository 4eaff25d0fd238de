#include "learn/policies/segment_attention.h"

#include <optional>

#include "learn/encoders/graph_coordinates.h"
#include "learn/encoders/graph_sage.h"
#include "learn/features/features.h"
#include "learn/policies/independent.h"
#include "learn/policies/neighbourhoods.h"
#include "learn/policies/segment_attention_net.h"

namespace emplace::learn {
namespace {

torch::Tensor inputs_of(const UnitGraph& units, const SegmentAttentionSettings& settings,
                        torch::Device device, Rng& rng) {
  torch::Tensor both =
      settings.feature_scale * to_tensor(unit_features(units, settings.features), torch::kCPU);
  if (settings.coordinates > 0) {
    both = torch::cat({both, graph_coordinates(units, settings.coordinates, rng)}, 1);
  }
  return (settings.centred ? both - both.mean(0) : both).to(device);
}

class Network {
 public:
  Network(Parameters& parameters, const UnitGraph& units, const torch::Tensor& inputs,
          const SegmentAttentionSettings& settings, Rng& rng)
      : sage_(parameters, "sage", both_directions(units), inputs.size(1), settings.sage_width,
              settings.sage_layers, rng),
        attention_(parameters, "attention", settings.sage_width, units.num_devices(),
                   {.width = settings.width,
                    .heads = settings.heads,
                    .layers = settings.layers,
                    .segment = settings.segment,
                    .superposition = settings.superposition,
                    .first_branch = settings.spread > 0 ? AttentionSettings{}.first_branch : 1},
                   rng) {
    if (settings.spread <= 0) return;
    const torch::NoGradGuard no_gradients;
    attention_.spread_outputs(sage_(inputs), settings.spread);
  }

  torch::Tensor operator()(const torch::Tensor& inputs) const { return attention_(sage_(inputs)); }

 private:
  GraphSage sage_;
  SegmentAttention attention_;
};

class SegmentAttentionPolicy final : public IndependentPolicy {
 public:
  SegmentAttentionPolicy(UnitGraph graph, const SegmentAttentionSettings& settings,
                         torch::Device device, Rng& rng)
      : IndependentPolicy(std::move(graph), device),
        settings_(settings),
        inputs_(inputs_of(units(), settings, device, rng)),
        network_(parameters_, units(), inputs_, settings, rng) {
    if (settings.neighbourhoods > 0) {
      neighbourhoods_.emplace(neighbourhoods_of(units(), settings.neighbourhoods, device),
                              settings.pull);
    }
  }

  Samples sample(std::int64_t count, Rng& rng) override {
    if (!neighbourhoods_) return IndependentPolicy::sample(count, rng);
    const torch::NoGradGuard no_gradients;
    return neighbourhoods_->sample(logits(), mask(), count, rng);
  }
  Scores score(const Samples& samples) override {
    if (!neighbourhoods_) return IndependentPolicy::score(samples);
    return neighbourhoods_->score(logits(), mask(), samples);
  }
  Placement placement(const Samples& samples, std::int64_t index) const override {
    if (!neighbourhoods_) return IndependentPolicy::placement(samples, index);
    return unit_placement(units(), neighbourhoods_->unit_actions(samples.actions), index);
  }
  Samples actions_for(const Placement& placement) override {
    Samples samples = IndependentPolicy::actions_for(placement);
    if (neighbourhoods_) {
      samples.actions = neighbourhoods_->actions_for(samples.actions, num_devices());
    }
    return samples;
  }

  bool restart(Rng& rng) override {
    Parameters fresh(parameters_.device());
    const Network network(fresh, units(), inputs_, settings_, rng);
    parameters_.assign(fresh.tensors());
    return true;
  }

 private:
  torch::Tensor logits() override { return network_(inputs_); }

  SegmentAttentionSettings settings_;
  torch::Tensor inputs_;
  std::optional<Neighbourhoods> neighbourhoods_;  // none: every unit is drawn by itself
  Network network_;
};

}  // namespace

PolicyPtr segment_attention_policy(UnitGraph units, const SegmentAttentionSettings& settings,
                                   const std::string& device, Rng& rng) {
  return std::make_shared<SegmentAttentionPolicy>(std::move(units), settings, torch::Device(device),
                                                  rng);
}

}  // namespace emplace::learn
