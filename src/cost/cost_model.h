// How long an op takes on a device: what was measured, or a roofline estimate.
#pragma once

#include <optional>
#include <string_view>

#include "base/decimal.h"
#include "base/ids.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace emplace {

enum class CostMode {
  kAuto,      // measured where the graph has a time for the device, analytic elsewhere
  kMeasured,  // measured only; an op without a time is an error
  kAnalytic,  // analytic only
};

std::optional<CostMode> parse_cost_mode(std::string_view name);

// A measured time under this key, which only readers of foreign formats write, is for any device.
inline constexpr std::string_view kAnyDevice = "*";

// The measured time of an op on a device: by the device's name, else by its kind, else for any.
std::optional<Decimal> measured_time_us(const Graph& graph, OpId op, const Device& device);

// The analytic model: launch + max(FLOPs / reachable peak, bytes moved / reachable bandwidth), the
// fractions of the peaks that are reachable being those of the op's class (docs/cost-model.md).
double analytic_time_us(const Graph& graph, OpId op, const DeviceKind& kind);

}  // namespace emplace
