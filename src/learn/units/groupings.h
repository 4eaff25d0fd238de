// Which ops a learned placer decides about together.
#pragma once

#include <cstdint>
#include <vector>

#include "learn/units/unit_graph.h"

namespace emplace::learn {

// What must share a device, and nothing more (GDP, Mars).
UnitGraph group_by_colocation(const Problem& problem);

// ColocRL's rules: what must share a device; an op and its only consumer, to a fixpoint; the ops of
// one module at one step of an unrolled network, or of one layer. A merge by these rules stops
// where a unit would have more than `largest_share` of all time; 0: what keeps
// units useful (useful_share of learn/units/merge_to_size.h). Then units are merged until there are
// `most_units`, as group_to_size does it.
struct ColocationRules {
  std::int64_t most_units = 200;
  double largest_share = 0;
  bool by_module = true;
  // No merge closes a cycle: see group_to_size_acyclic.
  bool acyclic = false;
};
UnitGraph group_as_colocrl(const Problem& problem, const ColocationRules& rules = {});

// Placeto's: what must share a device, then the shortest unit joins the neighbour that it exchanges
// most with until there are `most_units` (its code's prune_final_size), or more where no device may
// run all of the fewer. Units are of useful sizes whatever parts the graph is in:
// learn/units/merge_to_size.h says how large they are at most.
UnitGraph group_to_size(const Problem& problem, std::int64_t most_units);

// The same, but units form a directed acyclic graph as precedence_of (learn/units/precedence.h)
// sees it, as long as colocation groups do. A layer's forward and backward ops are thus in
// different units, unless colocation binds them.
UnitGraph group_to_size_acyclic(const Problem& problem, std::int64_t most_units);

// Of groups with the same label one unit, or as many, along the order in which they run, as it
// takes for units to be acyclic (as above) and to have a device each. Where these are more than
// `most_units`, they are merged on as above.
UnitGraph group_as_labelled(const Problem& problem,
                            const std::vector<std::uint32_t>& label_of_group,
                            std::int64_t most_units);

}  // namespace emplace::learn
