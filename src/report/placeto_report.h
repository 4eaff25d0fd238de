// What Placeto's simulator (sim/placeto.h) says of a placement.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/units.h"

#include "cost/problem.h"

#include "sim/placement.h"
#include "sim/simulator.h"

#include "report/comparison.h"

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

// Runs whose placements were valued so, on the simulator of a problem that placeto_problem() made:
// best first, as they are.
std::vector<ComparisonRow> rows_as_placeto(const Simulator& simulator,
                                           const std::vector<RunResult>& results);
std::string comparison_json_as_placeto(const std::vector<ComparisonRow>& rows);
// Of such rows; there is no bound to compare them with.
constexpr TimeNames kPlacetoTimes{.quantity = "makespan", .field = "makespan_ns", .bounded = false};

}  // namespace emplace
