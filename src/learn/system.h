// A learned system as data: which ops are decided about together, what policy decides, who teaches
// it, and how they go together. A placer says what it is made of in these terms, without libtorch;
// learn/make_method.h puts it together.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "learn/learners/cross_entropy.h"
#include "learn/learners/ppo.h"
#include "learn/learners/reinforce.h"
#include "learn/methods/episodes.h"
#include "learn/methods/method.h"
#include "learn/policies/grouper_placer.h"
#include "learn/policies/segment_attention.h"
#include "learn/policies/segment_seq2seq.h"
#include "learn/policies/seq2seq.h"
#include "learn/units/groupings.h"

namespace emplace::learn {

// What must share a device, and nothing more.
struct ByColocation {};
// Besides, the shortest unit joins the neighbour that it exchanges most with.
struct UpToSize {
  std::int64_t most_units = 32;
  bool acyclic = false;
};
// Functions of learn/units/groupings.h; ColocationRules are ColocRL's.
using GroupingSettings = std::variant<ByColocation, UpToSize, ColocationRules>;

// Post's, of which there is nothing to say.
struct TableSettings {};
using PolicySettings = std::variant<TableSettings, SequencePolicySettings, GrouperPlacerSettings,
                                    SegmentAttentionSettings, SegmentSequenceSettings>;

// Post's: PPO, and now and then a refit in its place.
struct PpoAndCrossEntropySettings {
  CrossEntropySettings refit = {};
  PpoSettings ppo = {};
};
using LearnerSettings =
    std::variant<ReinforceSettings, PpoSettings, CrossEntropySettings, PpoAndCrossEntropySettings>;

// REINFORCE in place of PPO with all that the two have in common, its baseline's beginning
// included.
inline ReinforceSettings reinforce_as(const PpoSettings& ppo) {
  return {.batch = ppo.batch,
          .optimizer = ppo.optimizer,
          .cost = ppo.cost,
          .baseline_decay = ppo.baseline_decay,
          .baseline_begins_at_signal = false,
          .entropy_weight = ppo.entropy_weight};
}

// A policy that samples whole placements, and its learner.
struct SamplingSystem {
  GroupingSettings units = ByColocation{};
  PolicySettings policy = TableSettings{};
  LearnerSettings learner = PpoSettings{};
  SampleAndLearnSettings rounds = {};
  // Copies of the policy that sample and find gradients side by side, for a parameter server that
  // takes the steps (learn/controllers/controllers.h); the learner is REINFORCE then.
  std::int64_t controllers = 1;
  // Ranks that value the samples of each, beside its own.
  std::int64_t workers = 0;

  bool has_parameter_server() const { return controllers > 1 || workers > 0; }
};

// Placeto's: a policy that moves one unit after the other.
struct EpisodeSystem {
  GroupingSettings units = UpToSize{.acyclic = true};
  EpisodeSettings episodes = {};
};

// A policy that was trained on other graphs.
struct TrainedSystem {
  std::string kind;            // of general_kinds(): the policy must be of it
  std::string policy;          // a policy file, or kShippedPolicy
  std::int64_t finetune = 0;   // rounds of learning on this graph
  std::int64_t proposals = 8;  // placements for each number of devices that is tried
  bool prior = true;           // and what an untrained policy of its kind would do
};
inline constexpr const char* kShippedPolicy = "shipped";

using System = std::variant<SamplingSystem, EpisodeSystem, TrainedSystem>;

}  // namespace emplace::learn
