// Cutting a model into consecutive parts, one for each device that is used, such that the largest
// load of a device is the least: dynamic programming over the ideals of the units' partial order
// and over how many devices of each class are taken (Tarnawski, Phanishayee, Devanur, Mahajan,
// Nina Paravecino, "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS
// 2020; over prefixes of a list it is PipeDream's, Narayanan et al., SOSP 2019).
//
// Only parts whose load is below a limit are looked at, and only ideals that the devices taken and
// those left can make up within it. The limit begins near a lower bound and grows until some split
// is within it, which makes most of the pairs of ideals cost nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "stream/bound_classes.h"
#include "stream/ideals.h"
#include "stream/split_problem.h"

namespace emplace {

struct ContiguousSplit {
  std::vector<DeviceId> device_of;  // by unit
  Nanoseconds load = 0;             // the largest
};

struct SplitLimits {
  std::size_t devices = ~std::size_t{0};  // that may be used
  Nanoseconds below = kNever;             // only splits of a lower load are wanted
  // Parts that may be looked at.
  std::int64_t parts = std::numeric_limits<std::int64_t>::max();
  std::function<bool()> stop = {};  // asked now and then
};

struct SplitResult {
  std::optional<ContiguousSplit> best;  // none: there is none within the limits
  bool finished = true;                 // false: stopped, or the table would be too large
  std::int64_t parts = 0;               // that were looked at
};

SplitResult best_contiguous_split(const SplitProblem& problem, const IdealLattice& lattice,
                                  const SplitLimits& limits);

}  // namespace emplace
