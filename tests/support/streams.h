// Small problems for tests of streams, and their best placements by trying all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/rng.h"

#include "cost/problem.h"

#include "sim/simulator.h"
#include "sim/throughput.h"

namespace emplace {

struct StreamCase {
  int accelerators = 2;
  int cpus = 0;
  bool unequal = false;
  bool tight = false;  // memory
  std::uint64_t ops = 6;
};

// What the literature's workloads look like, and by their rule: a graph whose ops have different
// times on accelerators and on CPUs, which are slower, have all the memory and pay for no
// communication.
std::shared_ptr<const Problem> random_stream(Rng& rng, const StreamCase& one);

// Nothing where the placement is refused.
std::optional<Evaluation> value_of_stream(const Problem& problem, const Placement& placement,
                                          Overlap overlap);

// Of all placements that are not refused.
std::optional<Evaluation> best_of_all_streams(const Problem& problem, Overlap overlap);

// Whether any devices are linked with each other, as streams need them.
bool has_linked_devices(const Problem& problem);

}  // namespace emplace
