// A path decomposition of a device's possible contents: the units in an order in which few nets are
// open at once, and at each step the states that matter, which say what part of each open net the
// device holds so far.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.h"
#include "base/units.h"

#include "stream/bound_contents.h"

namespace emplace {

// One way into a state: from a state of the step before, holding the step's unit or not.
struct PathMove {
  std::uint32_t from;
  bool holds;
  Nanoseconds load;     // added
  Nanoseconds traffic;  // added
};

struct PathStep {
  std::uint32_t unit;
  Csr<PathMove> moves;  // by state
};

// Before the first step there is one state, and after the last there is one. Contents whose load is
// beyond the limit may be missing.
struct ContentPaths {
  std::vector<PathStep> steps;
  std::size_t num_states = 0;    // of all steps
  std::uint32_t nets_eased = 0;  // nets that some states no longer charge for, to keep them few
};

// Along graph.order, with at most `max_states` states on average. Where that is too few, the
// cheapest nets are charged for less than they cost, so that loads are only ever too low.
ContentPaths find_paths(const ContentGraph& graph, Nanoseconds limit, std::size_t max_states);

}  // namespace emplace
