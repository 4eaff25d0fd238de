// What Placeto's simulator (sim/placeto.h) says of a placement.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/units.h"

#include "cost/problem.h"

#include "sim/placement.h"

namespace emplace {

struct PlacetoReport {
  Nanoseconds makespan = 0;
  std::vector<std::string> devices;
  std::vector<Bytes> peaks;  // by device
};

// Throws an Error for a problem with fused ops.
PlacetoReport simulate_as_placeto(const Problem& problem, const Placement& placement);

std::string to_text(const PlacetoReport& report);
std::string to_json(const PlacetoReport& report);

}  // namespace emplace
