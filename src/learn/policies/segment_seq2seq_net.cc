#include "learn/policies/segment_seq2seq_net.h"

#include <algorithm>

#include "learn/nn/recompute.h"

namespace emplace::learn {
namespace {

// Scoring keeps about this much for every decision and every number of the network's width.
constexpr double kBytesKept = 64;

// What a segment is scored from, beside the state before it.
struct Given {
  torch::Tensor inputs;   // [size, any]
  torch::Tensor mask;     // [size, devices] or [count, size, devices]
  torch::Tensor actions;  // [count, size]
};

// As Seq2Seq::score, but that all is computed a second time for the gradient.
torch::Tensor score_twice(const SegmentSeq2Seq::Network& network, const Segment& segment,
                          const Given& given, Seq2SeqState& state) {
  const torch::Tensor previous = state.previous;
  const auto function = [at = network.at, segment, mask = given.mask, actions = given.actions,
                         previous](const std::vector<torch::Tensor>& in) {
    Seq2SeqState carried{.encoder_h = in[1],
                         .encoder_c = in[2],
                         .decoder_h = in[3],
                         .decoder_c = in[4],
                         .previous = previous};
    const torch::Tensor distributions = at(segment).score(in[0], mask, actions, {}, &carried);
    return std::vector<torch::Tensor>{distributions, carried.encoder_h, carried.encoder_c,
                                      carried.decoder_h, carried.decoder_c};
  };
  const std::vector<torch::Tensor> out =
      recomputed({given.inputs, state.encoder_h, state.encoder_c, state.decoder_h, state.decoder_c},
                 network.parameters, function);
  state = {.encoder_h = out[1],
           .encoder_c = out[2],
           .decoder_h = out[3],
           .decoder_c = out[4],
           .previous = given.actions.select(1, segment.size - 1)};
  return out[0];
}

}  // namespace

SegmentSeq2Seq::SegmentSeq2Seq(std::int64_t steps, std::int64_t segment, std::int64_t width,
                               double most_bytes_kept)
    : width_(width), most_bytes_kept_(most_bytes_kept) {
  for (std::int64_t first = 0; first < steps; first += segment) {
    segments_.push_back({first, std::min(segment, steps - first)});
  }
}

Seq2SeqState SegmentSeq2Seq::first_state(std::int64_t count, const torch::Tensor& like) const {
  const auto zeros = [&](std::int64_t rows, std::int64_t columns) {
    return torch::zeros({rows, columns}, like.options());
  };
  Seq2SeqState state;
  state.encoder_h = zeros(1, width_ / 2);
  state.encoder_c = zeros(1, width_ / 2);
  state.decoder_h = zeros(count, width_);
  state.decoder_c = zeros(count, width_);
  return state;
}

Samples SegmentSeq2Seq::sample(const Network& network, const torch::Tensor& inputs,
                               const torch::Tensor& mask, const torch::Tensor& uniform) const {
  const torch::NoGradGuard no_gradients;
  Seq2SeqState state = first_state(num_samples(mask, uniform), inputs);
  std::vector<torch::Tensor> actions;
  std::vector<torch::Tensor> log_probs;
  for (const Segment& segment : segments_) {
    const auto& [first, size] = segment;
    const Seq2Seq::Decoded decoded = network.at(segment).sample(
        inputs.narrow(0, first, size), mask.narrow(-2, first, size),
        uniform.defined() ? uniform.narrow(1, first, size) : uniform, {}, &state);
    actions.push_back(decoded.actions);
    log_probs.push_back(log_prob_of(decoded.distributions, decoded.actions));
  }
  return {.actions = torch::cat(actions, 1), .log_probs = torch::cat(log_probs, 1)};
}

Scores SegmentSeq2Seq::score(const Network& network, const torch::Tensor& inputs,
                             const torch::Tensor& mask, const Samples& samples) const {
  const double kept = kBytesKept * static_cast<double>(samples.actions.numel() * width_);
  Seq2SeqState state = first_state(samples.size(), inputs);
  std::vector<torch::Tensor> distributions;
  for (const Segment& segment : segments_) {
    const auto& [first, size] = segment;
    const Given given{.inputs = inputs.narrow(0, first, size),
                      .mask = mask.narrow(-2, first, size),
                      .actions = samples.actions.narrow(1, first, size)};
    distributions.push_back(
        kept > most_bytes_kept_
            ? score_twice(network, segment, given, state)
            : network.at(segment).score(given.inputs, given.mask, given.actions, {}, &state));
  }
  Scores scores;
  scores.distributions = {torch::cat(distributions, 1)};
  scores.log_probs = log_prob_of(scores.distributions[0], samples.actions);
  scores.entropy = mean_entropy(scores.distributions[0]);
  return scores;
}

}  // namespace emplace::learn
