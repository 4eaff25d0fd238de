// What ColocRL and Spotlight, which have one policy, let people choose about it.
#pragma once

#include <cstdint>
#include <string>

#include "base/options.h"
#include "base/rng.h"

#include "cost/problem.h"

#include "placers/learned/support/learned.h"

#include "learn/units/groupings.h"
#include "learn/methods/method.h"
#include "learn/policies/seq2seq.h"

namespace emplace {

struct SequenceOptions : LearnedOptions {
  std::int64_t groups = 200;
  std::int64_t width = 64;
  bool sees_group = true;
  std::string order = "locality";
  double blocks = 16;
  std::int64_t samples = 20;
  double lr = 3e-3;
  double clip = 1;
  double entropy = 0;
  bool restarts = true;
};

// Adds them, and the options that every learned placer has.
template <class Options>
OptionSchema<Options> with_sequence_options(OptionSchema<Options> schema) {
  return with_learned_options(
      std::move(schema)
          .integer("groups", &Options::groups, 1, 2000, "Groups of ops, at most.")
          .integer("width", &Options::width, 1, 4096, "Of the LSTM's state.")
          .flag("sees_group", &Options::sees_group,
                "The decoder gets the features of the group that it decides about.")
          .choice("order", &Options::order, {"locality", "topological"},
                  "Of the groups: those that exchange much together, or as they run.")
          .real("blocks", &Options::blocks, 0, 1e9,
                "How often the device changes along the sequence at first; 0: as chance has it.")
          .integer("samples", &Options::samples, 1, 10'000, "K: placements per update.")
          .real("lr", &Options::lr, 1e-6, 1, "Adam's learning rate.")
          .real("clip", &Options::clip, 0, 1e6, "Largest norm of a gradient; 0: any.")
          .real("entropy", &Options::entropy, 0, 10, "Weight of an entropy bonus.")
          .flag("restarts", &Options::restarts, "Begin anew when the policy has all but decided."));
}

// The policy over ColocRL's groups with this learner.
inline learn::MethodPtr learn_sequences(const Problem& problem, const SequenceOptions& options,
                                        learn::LearnerPtr learner, const std::string& device,
                                        Rng& rng) {
  // Below it the network has all but decided: what is left of the budget is better spent on a new
  // one.
  constexpr double kFrozenEntropy = 0.01;
  return learn::sample_and_learn(
      learn::sequence_policy(learn::group_as_colocrl(problem, {.most_units = options.groups}),
                             {.width = options.width,
                              .decoder_sees_unit = options.sees_group,
                              .by_locality = options.order == "locality",
                              .blocks = options.blocks},
                             device, rng),
      std::move(learner), {.restart_entropy = options.restarts ? kFrozenEntropy : 0});
}

}  // namespace emplace
