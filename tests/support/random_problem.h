// Small random problems full of ties and corner cases, for property tests against the reference
// simulator: few distinct times and sizes, instant ops, empty tensors, views of everything, sources
// of every role, control dependencies, colocation, ops that write over inputs, and clusters whose
// channels are shared in every way that a cluster file can say.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/rng.h"

#include "cost/problem.h"

#include "sim/placement.h"

namespace emplace {

struct RandomLimits {
  std::uint64_t max_ops = 40;
  std::uint64_t max_devices = 5;
  bool roomy = false;      // memory is unlimited
  bool all_alive = false;  // by whose rule streams keep everything, as dnn-partitioning's do
  bool in_place = true;    // some ops may write over inputs
  bool plain = false;      // no gaps and no special links: what presets of today's machines have
};

// Every compute op has a measured time for every device.
std::shared_ptr<const Problem> random_problem(Rng& rng, const RandomLimits& limits = {});

// Valid: groups stay together, allowed devices and missing links are respected.
Placement random_placement(const Problem& problem, Rng& rng);

// FIFO, or small integer priorities, many of them equal.
Schedule random_schedule(const Problem& problem, Rng& rng);

// Everything that is needed to build the case again by hand. The placement may be empty.
std::string describe(const Problem& problem, const Placement& placement, const Schedule& schedule);

}  // namespace emplace
