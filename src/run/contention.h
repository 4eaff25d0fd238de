// Devices of one machine slow each other down: ops take longer while other devices are busy.
#pragma once

#include <memory>
#include <string>

#include "cost/problem.h"

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

// Times of ops while all other devices are busy are in the graph under this name.
std::string busy_name(const std::string& kind);

// The simulated step. Where the graph has times of busy machines, an op's time lies between the two
// by as much as the other devices are busy, which is found by simulating a few times.
Timeline predict(const std::shared_ptr<const Problem>& problem, const Placement& placement,
                 const Schedule& schedule);

}  // namespace emplace
