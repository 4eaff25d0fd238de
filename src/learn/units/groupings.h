// Which ops a learned placer decides about together.
#pragma once

#include <cstdint>

#include "learn/units/unit_graph.h"

namespace emplace::learn {

// What must share a device, and nothing more (GDP, Mars).
UnitGraph group_by_colocation(const Problem& problem);

// ColocRL's rules: what must share a device; an op and its only consumer, to a fixpoint; the ops of
// one module at one step of an unrolled network, or of one layer. A merge by the second rule stops
// where a unit would have more than `largest_share` of all time. Then the smallest unit joins the
// neighbour that it exchanges most with until there are `most_units`.
struct ColocationRules {
  std::int64_t most_units = 200;
  double largest_share = 0.02;
  bool by_module = true;
};
UnitGraph group_as_colocrl(const Problem& problem, const ColocationRules& rules = {});

// Placeto's: what must share a device, then the smallest unit joins the neighbour that it exchanges
// most with until there are `most_units` (its code's prune_final_size).
UnitGraph group_to_size(const Problem& problem, std::int64_t most_units);

}  // namespace emplace::learn
