// What the learned placers share: a method runs until the budget is spent, perhaps from a given
// placement, perhaps with a local search on what it found.
#pragma once

#include <functional>
#include <string>

#include "base/options.h"

#include "placer/placer.h"

#include "learn/method.h"

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
              "A placement that the policy imitates before it learns: --start's, or a placer's.")
      .flag("polish", &Options::polish,
            "Spend the last fifth of the budget on a local search from the best placement.");
}

// `make` puts the method together for the torch device that it is given. Its random numbers are for
// initial weights.
using MakeMethod = std::function<learn::MethodPtr(const std::string& device, Rng& rng)>;

PlaceResult place_by_learning(const std::string& key, Evaluator& evaluator, const Budget& budget,
                              Rng rng, const LearnedOptions& options, const MakeMethod& make);

}  // namespace emplace
