// Where the times of ops come from. A Problem is compiled from an ordered list of sources: an op's
// time on a device is that of the first source that knows one.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <emplace/problem.h>

#include "base/decimal.h"
#include "base/ids.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "cost/op_work.h"

namespace emplace {

// Immutable, and so shared by problems and threads. Adding one: derive, and hand it to `compile`
// (CompileOptions::sources) among others.
class CostSource {
 public:
  // One op on one device.
  struct Query {
    const Graph& graph;
    OpId op;  // neither a source nor a view, which take no time
    const Device& device;
    const DeviceKind& kind;  // of the device
    bool allowed;            // whether the op may run there; where not, no answer is needed
    WorkReader& work;        // of the graph
  };

  virtual ~CostSource() = default;

  // What reports call it; no two sources of a list have the same.
  virtual std::string_view name() const = 0;
  // Microseconds, at least 0, without the device's slowdown; nothing where the source does not
  // know. Asked of every op, of which there may be millions.
  virtual std::optional<Decimal> time_us(const Query& query) const = 0;
  // Whether ops may last differently on this device than on others of its kind.
  virtual bool tells_apart(const Graph&, const Device&) const { return true; }
};

inline constexpr std::string_view kMeasuredCosts = "measured";
inline constexpr std::string_view kAnalyticCosts = "analytic";

std::optional<CostMode> parse_cost_mode(std::string_view name);
CostSources cost_sources(CostMode mode);

}  // namespace emplace
