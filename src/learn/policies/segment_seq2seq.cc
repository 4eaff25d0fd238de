#include "learn/policies/segment_seq2seq.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "learn/encoders/deep_graph_infomax.h"
#include "learn/encoders/gcn.h"
#include "learn/policies/seq2seq_net.h"
#include "learn/policies/unit_sequence.h"
#include "learn/policy.h"
#include "learn/recompute.h"

namespace emplace::learn {
namespace {

// Scoring keeps about this much for every decision and every number of the network's width.
constexpr double kBytesKept = 64;

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
  struct Segment {
    std::int64_t first;
    std::int64_t size;
  };

  std::int64_t num_units() const { return features_.size(0); }
  // In the order of the sequence.
  torch::Tensor encode() const {
    return sequence_.ordered(encoder_.from_mixed(adjacency_, mixed_));
  }
  Seq2Seq make_placer(Parameters& parameters, Rng& rng) const;
  Seq2SeqState first_state(std::int64_t count) const;
  // Log-distributions [count, size, devices] and the state after the segment.
  torch::Tensor score_segment(const Segment& segment, const torch::Tensor& encoded,
                              const torch::Tensor& actions, Seq2SeqState& state) const;
  torch::Tensor recompute_segment(const Segment& segment, const torch::Tensor& encoded,
                                  const torch::Tensor& actions, Seq2SeqState& state) const;

  UnitSequence sequence_;
  SegmentSequenceSettings settings_;
  std::vector<Segment> segments_;
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
      adjacency_(normalized_adjacency(sequence_.units(), device)),
      features_(
          torch::cat({to_tensor(unit_features(sequence_.units()), device), sequence_.waves()}, 1)),
      mixed_(adjacency_.sum(features_)) {
  for (std::int64_t first = 0; first < num_units(); first += settings.segment) {
    segments_.push_back({first, std::min(settings.segment, num_units() - first)});
  }
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
                  .product_attention = true,
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

Seq2SeqState SegmentSequencePolicy::first_state(std::int64_t count) const {
  const auto zeros = [&](std::int64_t rows, std::int64_t columns) {
    return torch::zeros({rows, columns}, features_.options());
  };
  Seq2SeqState state;
  state.encoder_h = zeros(1, settings_.width / 2);
  state.encoder_c = zeros(1, settings_.width / 2);
  state.decoder_h = zeros(count, settings_.width);
  state.decoder_c = zeros(count, settings_.width);
  return state;
}

Samples SegmentSequencePolicy::sample(std::int64_t count, Rng& rng) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor encoded = encode();
  const torch::Tensor uniform = uniforms({count, num_units()}, rng);
  Seq2SeqState state = first_state(count);
  std::vector<torch::Tensor> actions;
  std::vector<torch::Tensor> log_probs;
  for (const auto& [first, size] : segments_) {
    const Seq2Seq::Decoded decoded =
        placer_.sample(encoded.narrow(0, first, size), sequence_.mask().narrow(0, first, size),
                       uniform.narrow(1, first, size), {}, &state);
    actions.push_back(decoded.actions);
    log_probs.push_back(log_prob_of(decoded.distributions, decoded.actions));
  }
  return {.actions = torch::cat(actions, 1), .log_probs = torch::cat(log_probs, 1)};
}

torch::Tensor SegmentSequencePolicy::score_segment(const Segment& segment,
                                                   const torch::Tensor& encoded,
                                                   const torch::Tensor& actions,
                                                   Seq2SeqState& state) const {
  return placer_.score(encoded, sequence_.mask().narrow(0, segment.first, segment.size), actions,
                       {}, &state);
}

torch::Tensor SegmentSequencePolicy::recompute_segment(const Segment& segment,
                                                       const torch::Tensor& encoded,
                                                       const torch::Tensor& actions,
                                                       Seq2SeqState& state) const {
  const torch::Tensor previous = state.previous;
  const auto function = [this, segment, actions, previous](const std::vector<torch::Tensor>& in) {
    Seq2SeqState carried{.encoder_h = in[1],
                         .encoder_c = in[2],
                         .decoder_h = in[3],
                         .decoder_c = in[4],
                         .previous = previous};
    const torch::Tensor distributions = score_segment(segment, in[0], actions, carried);
    return std::vector<torch::Tensor>{distributions, carried.encoder_h, carried.encoder_c,
                                      carried.decoder_h, carried.decoder_c};
  };
  const std::vector<torch::Tensor> out =
      recomputed({encoded, state.encoder_h, state.encoder_c, state.decoder_h, state.decoder_c},
                 placer_parameters_, function);
  state = {.encoder_h = out[1],
           .encoder_c = out[2],
           .decoder_h = out[3],
           .decoder_c = out[4],
           .previous = actions.select(1, segment.size - 1)};
  return out[0];
}

Scores SegmentSequencePolicy::score(const Samples& samples) {
  const torch::Tensor encoded = encode();
  const double kept = kBytesKept * static_cast<double>(samples.actions.numel() * settings_.width);
  Seq2SeqState state = first_state(samples.size());
  std::vector<torch::Tensor> distributions;
  for (const Segment& segment : segments_) {
    const torch::Tensor inputs = encoded.narrow(0, segment.first, segment.size);
    const torch::Tensor actions = samples.actions.narrow(1, segment.first, segment.size);
    distributions.push_back(kept > settings_.most_bytes_kept
                                ? recompute_segment(segment, inputs, actions, state)
                                : score_segment(segment, inputs, actions, state));
  }
  Scores scores;
  scores.distributions = {torch::cat(distributions, 1)};
  scores.log_probs = log_prob_of(scores.distributions[0], samples.actions);
  scores.entropy = mean_entropy(scores.distributions[0]);
  return scores;
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
