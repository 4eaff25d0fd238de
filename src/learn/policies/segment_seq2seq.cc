#include "learn/policies/segment_seq2seq.h"

#include <utility>
#include <vector>

#include "learn/encoders/deep_graph_infomax.h"
#include "learn/encoders/gcn.h"
#include "learn/policies/policy.h"
#include "learn/policies/segment_seq2seq_net.h"
#include "learn/policies/unit_sequence.h"

namespace emplace::learn {
namespace {

torch::Tensor features_of(const UnitSequence& sequence, const SegmentSequenceSettings& settings,
                          torch::Device device) {
  const torch::Tensor features =
      to_tensor(unit_features(sequence.units(), settings.features), device);
  return settings.waves ? torch::cat({features, sequence.waves()}, 1) : features;
}

class SegmentSequencePolicy final : public Policy {
 public:
  SegmentSequencePolicy(UnitGraph units, const SegmentSequenceSettings& settings,
                        torch::Device device, Rng& rng);

  void prepare(const Budget& budget, Rng& rng) override;
  // The encoder keeps what it knows.
  bool restart(Rng& rng) override;
  Samples sample(std::int64_t count, Rng& rng) override;
  Scores score(const Samples& samples) override;
  Placement placement(const Samples& samples, std::int64_t index) const override;
  Samples actions_for(const Placement& placement) override;
  // The encoder's part is the same for all samples, the decoder's is not.
  std::int64_t shards() const override { return 2; }

 private:
  // In the order of the sequence.
  torch::Tensor encode() const {
    return sequence_.ordered(encoder_.from_mixed(adjacency_, mixed_));
  }
  Seq2Seq make_placer(Parameters& parameters, Rng& rng) const;
  SegmentSeq2Seq::Network network() const {
    return {.at = [this](const Segment&) { return placer_; }, .parameters = placer_parameters_};
  }

  UnitSequence sequence_;
  SegmentSequenceSettings settings_;
  SegmentSeq2Seq segments_;
  Neighbours adjacency_;
  torch::Tensor features_;
  torch::Tensor mixed_;  // A^ times the features
  Gcn encoder_;
  Seq2Seq placer_;
  std::vector<torch::Tensor> placer_parameters_;
};

SegmentSequencePolicy::SegmentSequencePolicy(UnitGraph units,
                                             const SegmentSequenceSettings& settings,
                                             torch::Device device, Rng& rng)
    : Policy(device),
      sequence_(std::move(units), settings.by_locality, device),
      settings_(settings),
      segments_(sequence_.size(), settings.segment, settings.width, settings.most_bytes_kept),
      adjacency_(normalized_adjacency(sequence_.units(), device)),
      features_(features_of(sequence_, settings, device)),
      mixed_(adjacency_.sum(features_)) {
  encoder_ = Gcn(parameters_, "encoder", features_.size(1),
                 {.layers = settings.encoder_layers, .width = settings.encoder_width}, rng);
  const std::size_t of_encoder = parameters_.named().size();
  placer_ = make_placer(parameters_, rng);
  const std::vector<torch::Tensor> all = parameters_.tensors();
  placer_parameters_.assign(all.begin() + static_cast<std::ptrdiff_t>(of_encoder), all.end());
}

Seq2Seq SegmentSequencePolicy::make_placer(Parameters& parameters, Rng& rng) const {
  return Seq2Seq(parameters, "placer", settings_.encoder_width, sequence_.units().num_devices(),
                 {.width = settings_.width,
                  .bidirectional = true,
                  .decoder_sees_memory = true,
                  .product_attention = !settings_.additive_attention,
                  .repeat = sequence_.repeat_for(settings_.blocks)},
                 rng);
}

bool SegmentSequencePolicy::restart(Rng& rng) {
  Parameters fresh(parameters_.device());
  make_placer(fresh, rng);
  const std::vector<torch::Tensor> from = fresh.tensors();
  const torch::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < from.size(); ++i) placer_parameters_[i].copy_(from[i]);
  return true;
}

void SegmentSequencePolicy::prepare(const Budget& budget, Rng& rng) {
  const double begin = budget.elapsed_seconds();
  const auto stop = [&] {
    if (budget.spent(0)) return true;
    return budget.seconds &&
           budget.elapsed_seconds() - begin > settings_.pretraining_share * *budget.seconds;
  };
  const auto encode = [&](const torch::Tensor& features) { return encoder_(adjacency_, features); };
  deep_graph_infomax(parameters_, features_, encode, {.iterations = settings_.pretraining}, stop,
                     rng);
}

Samples SegmentSequencePolicy::sample(std::int64_t count, Rng& rng) {
  const torch::NoGradGuard no_gradients;
  return segments_.sample(network(), encode(), sequence_.mask(),
                          uniforms({count, sequence_.size()}, rng));
}

Scores SegmentSequencePolicy::score(const Samples& samples) {
  return segments_.score(network(), encode(), sequence_.mask(), samples);
}

Placement SegmentSequencePolicy::placement(const Samples& samples, std::int64_t index) const {
  return sequence_.placement(samples, index);
}

Samples SegmentSequencePolicy::actions_for(const Placement& placement) {
  Samples samples;
  samples.actions = sequence_.actions_for(placement);
  return samples;
}

}  // namespace

PolicyPtr segment_sequence_policy(UnitGraph units, const SegmentSequenceSettings& settings,
                                  const std::string& device, Rng& rng) {
  return std::make_shared<SegmentSequencePolicy>(std::move(units), settings, torch::Device(device),
                                                 rng);
}

}  // namespace emplace::learn
