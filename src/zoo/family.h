// What the random families share. A family's graph follows from its seed alone; an option that is
// given replaces what the seed would decide, and changes none of its other decisions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>

#include "base/rng.h"

#include "zoo/model.h"

namespace emplace::zoo {

// Integer options of a family are 0 where the seed decides.
struct FamilyOptions : StepOptions {
  std::int64_t seed = 0;

  FamilyOptions() { batch = 0; }
};

template <class Options>
OptionSchema<Options> family_schema() {
  return OptionSchema<Options>{}
      .integer("seed", &Options::seed, 0, std::numeric_limits<std::int64_t>::max(),
               "Decides the architecture, and every option that is 0.")
      .integer("batch", &Options::batch, 0, 1 << 20, "Examples in a step.")
      .choice("dtype", &Options::dtype, {"float32", "float16", "bfloat16"},
              "Of parameters and activations; training in 16 bits is mixed (docs/training.md).")
      .flag("training", &Options::training, "Forward, backward and update, or forward alone.")
      .choice("optimizer", &Options::optimizer, optimizer_names(),
              "Decides what state each parameter has.");
}

// The seed's decisions, each with a generator of its own.
class Decisions {
 public:
  explicit Decisions(std::int64_t seed) : rng_(static_cast<std::uint64_t>(seed)) {}

  Rng next() { return rng_.split(++made_); }

  std::int64_t next(std::int64_t given, std::initializer_list<std::int64_t> choices) {
    const std::int64_t chosen = next().pick(std::span(choices.begin(), choices.size()));
    return given != 0 ? given : chosen;
  }

 private:
  Rng rng_;
  std::uint64_t made_ = 0;
};

}  // namespace emplace::zoo
