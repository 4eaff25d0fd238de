// Whether CPUs take ops. A CPU has the accelerators' kernels to start, which is not simulated, so
// it is no device like the others unless someone says so.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cost/problem.h"

#include "sim/objective.h"

#include "placer/context.h"

#include "run/subset_problem.h"

namespace emplace {

enum class CpuUse {
  kIfNeeded,  // where ops must be on one, or nothing fits without
  kAlways,
  kNever,  // but where ops must be on one
};

struct WithoutCpus {
  std::shared_ptr<const Problem> problem;  // on the accelerators alone
  DeviceSet devices;                       // their numbers in the whole problem
  bool fits = false;                       // a quick placement does
};

// Nothing where there is no CPU to leave out, or no other device; where an op may be nowhere else;
// or where a start has one on a CPU. A CPU that is marked free_communication belongs to the
// workload and is not left out.
std::optional<WithoutCpus> without_cpus(const std::shared_ptr<const Problem>& whole,
                                        const Objective& objective,
                                        const std::vector<Solution>& starts = {});

}  // namespace emplace
