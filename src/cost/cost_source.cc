#include "cost/cost_source.h"

#include <algorithm>

#include "base/error.h"

#include "cost/cost_model.h"

namespace emplace {
namespace {

class Measured final : public CostSource {
 public:
  std::string_view name() const override { return kMeasuredCosts; }

  std::optional<Decimal> time_us(const Query& query) const override {
    return measured_time_us(query.graph, query.op, query.device);
  }

  // Names of devices are also those of pins, as in divided graphs.
  bool tells_apart(const Graph& graph, const Device& device) const override {
    const auto name = graph.strings().find(device.name);
    for (OpId op = 0; name && op < graph.num_ops(); ++op) {
      const auto times = graph.measured_times(op);
      if (std::any_of(times.begin(), times.end(),
                      [&](const MeasuredTime& time) { return time.device == *name; })) {
        return true;
      }
    }
    return false;
  }
};

class Analytic final : public CostSource {
 public:
  std::string_view name() const override { return kAnalyticCosts; }

  std::optional<Decimal> time_us(const Query& query) const override {
    constexpr int kDigits = 6;  // picoseconds
    constexpr double kLongest = 1e12;
    // Ops may lack what an estimate needs on devices that they may not use anyway.
    if (!query.allowed) return std::nullopt;
    const double time =
        analytic_time_us(query.graph, query.op, query.work.work(query.op), query.kind);
    if (!(time < kLongest)) {
      fail_input("op '{}': lasts longer than can be counted on '{}'", query.graph.op_name(query.op),
                 query.device.name);
    }
    return Decimal::from_double(time, kDigits);
  }

  bool tells_apart(const Graph&, const Device&) const override { return false; }
};

}  // namespace

std::shared_ptr<const CostSource> measured_costs() {
  return std::make_shared<const Measured>();
}

std::shared_ptr<const CostSource> analytic_costs() {
  return std::make_shared<const Analytic>();
}

std::optional<CostMode> parse_cost_mode(std::string_view name) {
  if (name == "auto") return CostMode::kAuto;
  if (name == kMeasuredCosts) return CostMode::kMeasured;
  if (name == kAnalyticCosts) return CostMode::kAnalytic;
  return std::nullopt;
}

CostSources cost_sources(CostMode mode) {
  switch (mode) {
    case CostMode::kMeasured:
      return {measured_costs()};
    case CostMode::kAnalytic:
      return {analytic_costs()};
    case CostMode::kAuto:
      break;
  }
  return {measured_costs(), analytic_costs()};
}

}  // namespace emplace
