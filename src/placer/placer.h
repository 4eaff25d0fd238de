// What a placer is, and the line that declares one. A placer is one file,
// src/placers/<family>/<key>.cc; HACKING.md shows how to add one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "base/options.h"
#include "base/rng.h"

#include "sim/placement.h"

#include "placer/context.h"

#include "search/registry.h"

namespace emplace {

struct PlaceResult {
  Placement placement;
  Schedule schedule = {};               // the placer's own order of ops; FIFO where it has none
  std::vector<std::string> notes = {};  // what the user should know, e.g. that memory ran short
};

class Placer {
 public:
  virtual ~Placer() = default;

  // A valid placement (check_placement) of the context's problem. Respects memory where the method
  // can; where the result may not fit, a note says so. Same problem, options and rng: same result.
  virtual PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) = 0;
};

using PlacerRegistry = Registry<Placer>;

}  // namespace emplace

// EMPLACE_PLACER(heft, Heft, .family = "heuristic", .summary = "...", .reference = "...")
// at the end of heft.cc, inside namespace emplace. `Class` has `Options` and a static `schema()`.
#define EMPLACE_PLACER(key_, Class, ...)                        \
  void register_##key_(PlacerRegistry& registry);               \
  void register_##key_(PlacerRegistry& registry) {              \
    registry.add<Class>(MethodInfo{.key = #key_, __VA_ARGS__}); \
  }
