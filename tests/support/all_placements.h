// Every placement of a small problem, for tests that must look at all of them.
#pragma once

#include <cstddef>
#include <vector>

#include "cost/problem.h"

#include "sim/placement.h"

#include "support/reference_simulator.h"

namespace emplace {

// The next way to give groups devices, counting up; false after the last.
inline bool next_assignment(const Problem& problem, std::vector<std::size_t>& digits) {
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (++digits[group] < problem.allowed_devices(group).size()) return true;
    digits[group] = 0;
  }
  return false;
}

inline Placement placement_of(const Problem& problem, const std::vector<std::size_t>& digits) {
  Placement placement(problem.num_ops());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const GroupId group = problem.group_of(op);
    placement[op] = problem.allowed_devices(group)[digits[group]];
  }
  return placement;
}

// Calls `visit` with every valid placement of a small problem.
template <class Visit>
void for_each_placement(const Problem& problem, Visit visit) {
  std::vector<std::size_t> digits(problem.num_groups(), 0);
  do {
    const Placement placement = placement_of(problem, digits);
    if (reference::refusal(problem.graph(), problem.cluster(), placement).empty()) visit(placement);
  } while (next_assignment(problem, digits));
}

}  // namespace emplace
