#include "learn/general/attention_policy.h"

#include <utility>

#include "learn/encoders/graph_sage.h"
#include "learn/nn/device_scores.h"
#include "learn/policies/independent.h"
#include "learn/policies/segment_attention_net.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kSageLayers = 3;
constexpr std::int64_t kSegment = 64;
constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kNeighbourhoods = 200;

class GeneralAttentionPolicy final : public GeneralPolicy {
 public:
  GeneralAttentionPolicy(UnitGraph units, const GeneralNetwork& network, torch::Device device,
                         Rng& rng)
      : GeneralPolicy(device),
        units_(std::move(units)),
        views_(units_),
        features_(to_tensor(views_.unit_features(), device)),
        neighbourhoods_(neighbourhoods_of(units_, kNeighbourhoods, device)),
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

  Samples likeliest() override {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor log_probs = distributions();
    Samples samples;
    samples.actions = log_probs.argmax(-1).unsqueeze(0);
    samples.log_probs = log_prob_of(log_probs.unsqueeze(0), samples.actions);
    return samples;
  }
  Samples sample(std::int64_t count, Rng& rng) override {
    const torch::NoGradGuard no_gradients;
    return sample_in_neighbourhoods(distributions(), neighbourhoods_, count, rng);
  }
  Scores score(const Samples& samples) override {
    return score_independently(distributions(), samples);
  }
  Placement placement(const Samples& samples, std::int64_t index) const override {
    return unit_placement(units_, samples.actions, index);
  }
  Samples actions_for(const Placement& placement) override {
    Samples samples;
    samples.actions = unit_actions(units_, placement, parameters_.device());
    return samples;
  }

 private:
  torch::Tensor distributions() const {
    const torch::Tensor h = attention_(sage_(inputs_));
    return torch::log_softmax(scores_(h, devices_.devices, devices_.pairs) + devices_.mask, -1);
  }

  UnitGraph units_;
  DeviceViews views_;
  torch::Tensor features_;
  torch::Tensor neighbourhoods_;
  GraphSage sage_;
  SegmentAttention attention_;
  DeviceScores scores_;
  DeviceTensors devices_;
  torch::Tensor inputs_;  // features, and what is the same for all units
};

}  // namespace

GeneralPolicyPtr general_attention_policy(UnitGraph units, const GeneralNetwork& network,
                                          const std::string& device, Rng& rng) {
  return std::make_shared<GeneralAttentionPolicy>(std::move(units), network, torch::Device(device),
                                                  rng);
}

}  // namespace emplace::learn
