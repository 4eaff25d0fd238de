// What the simulator on which Placeto was trained (Addanki et al. 2019) reports. Clusters such as
// "4xk80-placeto" (cluster/presets.h) give ours the same devices and buses; the functions below
// add what docs/simulator.md decides differently on purpose. Two differences remain: there, ops and
// transfers that take no time wait for their device or bus; and ops that become ready at the same
// time run in the order in which they were queued, here by index.
#pragma once

#include <memory>
#include <vector>

#include "base/units.h"

#include "cost/problem.h"

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

// The problem with a graph in which two ops are joined by one edge at most: of several outputs of
// one op, another reads only the last of its inputs, and waiting for an op is reading its first
// output, if it has one. Ops keep their indices and times. Throws an Error for a problem with fused
// ops.
std::shared_ptr<const Problem> placeto_problem(const Problem& problem);

// When the last device or bus is free again: with the gap after the last op and the hold after the
// last transfer, where `Timeline::step` ends with the last op.
Nanoseconds placeto_makespan(const Problem& problem, const Placement& placement,
                             const Timeline& timeline);

// By device: an op's outputs are there from its start until one microsecond before the last op that
// reads them ends, counted in whole microseconds; what nothing reads only at its start. There are
// no weights, no copies on other devices and no temporary memory.
std::vector<Bytes> placeto_peaks(const Problem& problem, const Placement& placement,
                                 const Timeline& timeline);

}  // namespace emplace
