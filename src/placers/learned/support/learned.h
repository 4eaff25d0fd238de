// What the learned placers share: a system learns until the budget is spent, perhaps from a given
// placement, perhaps with a local search on what it found.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/options.h"

#include "placer/placer.h"

#include "learn/system.h"

namespace emplace {

struct LearnedOptions {
  std::string warm_start = "none";
  bool polish = false;
};

// Adds the options that every learned placer has.
template <class Options>
OptionSchema<Options> with_learned_options(OptionSchema<Options> schema) {
  return std::move(schema)
      .choice("warm_start", &Options::warm_start, {"none", "given", "expert", "auto"},
              "A placement that the policy imitates before it learns: one that is given, or a "
              "placer's.")
      .flag("polish", &Options::polish,
            "Spend the last fifth of the budget on a local search from the best placement.");
}

// Options of placers whose policies can be trained on other graphs.
struct GeneralOptions : LearnedOptions {
  std::string policy = {};
  std::int64_t finetune = 0;
  std::int64_t proposals = 8;
  bool prior = true;
};

template <class Options>
OptionSchema<Options> with_general_options(OptionSchema<Options> schema) {
  return with_learned_options(
      std::move(schema)
          .text("policy", &Options::policy, "a file, or shipped",
                "Begin with what `emplace train` has learned on other graphs; the policy's own "
                "sizes and settings then hold.")
          .integer("finetune", &Options::finetune, 0, 1'000'000,
                   "With a policy: rounds of learning on this graph; 0: its proposals alone.")
          .integer("proposals", &Options::proposals, 1, 10'000,
                   "With a policy: placements for each number of devices that is tried.")
          .flag("prior", &Options::prior,
                "With a policy: try what one that was never trained would do, too."));
}

// `system`, or in its place the trained policy that the options name.
learn::System with_policy(const std::string& kind, const GeneralOptions& options,
                          learn::System system);

// Of those whose papers have several controllers.
constexpr std::int64_t kMostControllers = 1024;
inline constexpr const char* kControllersHelp =
    "Copies of the policy that sample and learn side by side, on the ranks or threads there are; a "
    "parameter server applies their gradients.";
constexpr std::int64_t kMostWorkers = 1024;
inline constexpr const char* kWorkersHelp =
    "Of each controller: further ranks that value its samples; 0: its own threads alone.";

PlaceResult place_by_learning(const std::string& key, PlaceContext& context, const Budget& budget,
                              Rng rng, const LearnedOptions& options, const learn::System& system);

}  // namespace emplace
