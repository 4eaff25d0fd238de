#include "learn/make_method.h"

#include <utility>

#include "base/read_bytes.h"

#include "learn/general/general_method.h"
#include "learn/general/shipped.h"
#include "learn/policies/table.h"

namespace emplace::learn {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

UnitGraph group(const Problem& problem, const GroupingSettings& settings) {
  return std::visit(
      Overloaded{
          [&](const ByColocation&) { return group_by_colocation(problem); },
          [&](const UpToSize& size) {
            return size.acyclic ? group_to_size_acyclic(problem, size.most_units)
                                : group_to_size(problem, size.most_units);
          },
          [&](const ColocationRules& rules) { return group_as_colocrl(problem, rules); },
      },
      settings);
}

PolicyPtr make_policy(UnitGraph units, const PolicySettings& settings, const std::string& device,
                      Rng& rng) {
  return std::visit(
      Overloaded{
          [&](const TableSettings&) { return table_policy(std::move(units), device); },
          [&](const SequencePolicySettings& network) {
            return sequence_policy(std::move(units), network, device, rng);
          },
          [&](const GrouperPlacerSettings& network) {
            return grouper_placer_policy(std::move(units), network, device, rng);
          },
          [&](const SegmentAttentionSettings& network) {
            return segment_attention_policy(std::move(units), network, device, rng);
          },
          [&](const SegmentSequenceSettings& network) {
            return segment_sequence_policy(std::move(units), network, device, rng);
          },
      },
      settings);
}

LearnerPtr make_learner(const Problem& problem, const LearnerSettings& settings) {
  return std::visit(
      Overloaded{
          [&](const ReinforceSettings& learner) { return reinforce(problem, learner); },
          [&](const PpoSettings& learner) { return ppo(problem, learner); },
          [&](const CrossEntropySettings& learner) { return cross_entropy(problem, learner); },
          [&](const PpoAndCrossEntropySettings& both) {
            return ppo_and_cross_entropy(problem, both.refit, both.ppo);
          },
      },
      settings);
}

MethodPtr make_trained(const TrainedSystem& system, const Problem& problem,
                       const std::string& device, Rng& rng) {
  const bool shipped = system.policy == kShippedPolicy;
  return general_method(problem, shipped ? shipped_policy(system.kind) : read_bytes(system.policy),
                        shipped ? "the shipped policy" : system.policy,
                        {.kind = system.kind,
                         .rounds = system.finetune,
                         .proposals = system.proposals,
                         .prior = system.prior},
                        device, rng);
}

}  // namespace

SamplingParts make_parts(const SamplingSystem& system, const Problem& problem,
                         const std::string& device, Rng& rng) {
  PolicyPtr policy = make_policy(group(problem, system.units), system.policy, device, rng);
  return {std::move(policy), make_learner(problem, system.learner)};
}

MethodPtr make_method(const System& system, const Problem& problem, const std::string& device,
                      Rng& rng) {
  return std::visit(
      Overloaded{
          [&](const SamplingSystem& sampling) {
            SamplingParts parts = make_parts(sampling, problem, device, rng);
            return sample_and_learn(std::move(parts.policy), std::move(parts.learner),
                                    sampling.rounds);
          },
          [&](const EpisodeSystem& placeto) {
            return placeto_episodes(group(problem, placeto.units), placeto.episodes, device, rng);
          },
          [&](const TrainedSystem& trained) { return make_trained(trained, problem, device, rng); },
      },
      system);
}

}  // namespace emplace::learn
