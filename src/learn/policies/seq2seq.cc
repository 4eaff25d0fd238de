#include "learn/policies/seq2seq.h"

#include "learn/features/features.h"
#include "learn/policies/policy.h"
#include "learn/policies/seq2seq_net.h"
#include "learn/policies/unit_sequence.h"

namespace emplace::learn {
namespace {

// What most of a batch's work is done in, side by side.
constexpr std::int64_t kShards = 2;

class SequencePolicy final : public Policy {
 public:
  SequencePolicy(UnitGraph units, const SequencePolicySettings& settings, torch::Device device,
                 Rng& rng)
      : Policy(device),
        sequence_(std::move(units), settings.by_locality, device),
        settings_(settings) {
    const UnitGraph& graph = sequence_.units();
    std::vector<torch::Tensor> inputs{to_tensor(unit_features(graph, settings.features), device),
                                      to_tensor(adjacency_features(graph), device)};
    if (settings.waves) inputs.push_back(sequence_.waves());
    inputs_ = sequence_.ordered(torch::cat(inputs, 1));
    net_ = make_net(parameters_, rng);
  }

  Samples sample(std::int64_t count, Rng& rng) override {
    const Seq2Seq::Decoded decoded =
        net_.sample(inputs_, sequence_.mask(), uniforms({count, inputs_.size(0)}, rng));
    Samples samples;
    samples.actions = decoded.actions;
    samples.log_probs = log_prob_of(decoded.distributions, decoded.actions);
    return samples;
  }

  Scores score(const Samples& samples) override {
    const torch::Tensor log_probs = net_.score(inputs_, sequence_.mask(), samples.actions);
    Scores scores;
    scores.log_probs = log_prob_of(log_probs, samples.actions);
    scores.entropy = mean_entropy(log_probs);
    scores.distributions = {log_probs};
    return scores;
  }

  Placement placement(const Samples& samples, std::int64_t index) const override {
    return sequence_.placement(samples, index);
  }

  Samples actions_for(const Placement& placement) override {
    Samples samples;
    samples.actions = sequence_.actions_for(placement);
    return samples;
  }

  bool restart(Rng& rng) override {
    Parameters fresh(parameters_.device());
    make_net(fresh, rng);
    parameters_.assign(fresh.tensors());
    return true;
  }

  std::int64_t shards() const override { return kShards; }

 private:
  Seq2Seq make_net(Parameters& parameters, Rng& rng) const {
    return Seq2Seq(parameters, "seq2seq", inputs_.size(1), sequence_.units().num_devices(),
                   {.width = settings_.width,
                    .bidirectional = settings_.bidirectional,
                    .decoder_sees_inputs = settings_.decoder_sees_unit,
                    .tanh_constant = settings_.tanh_constant,
                    .temperature = settings_.temperature,
                    .repeat = sequence_.repeat_for(settings_.blocks)},
                   rng);
  }

  UnitSequence sequence_;
  SequencePolicySettings settings_;
  torch::Tensor inputs_;  // [units, features], in the order of the sequence
  Seq2Seq net_;
};

}  // namespace

PolicyPtr sequence_policy(UnitGraph units, const SequencePolicySettings& settings,
                          const std::string& device, Rng& rng) {
  return std::make_shared<SequencePolicy>(std::move(units), settings, torch::Device(device), rng);
}

}  // namespace emplace::learn
