#include "learn/units/coordinates.h"

#include <algorithm>
#include <numeric>

#include "graph/modules.h"

#include "learn/nn/deadline.h"
#include "learn/units/orders.h"

namespace emplace::learn {
namespace {

// Of what the backward pass writes, how much is there at once.
constexpr double kBackwardShare = 0.3;

// By unit: the sum of `values` before the middle of each, in parts of the total.
std::vector<double> shares_before(const std::vector<UnitId>& order,
                                  const std::vector<double>& values) {
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  std::vector<double> result(values.size(), 0.5);
  if (total <= 0) return result;
  double before = 0;
  for (const UnitId unit : order) {
    result[unit] = (before + values[unit] / 2) / total;
    before += values[unit];
  }
  return result;
}

std::vector<UnitId> sorted_by(const std::vector<double>& keys) {
  std::vector<UnitId> order(keys.size());
  std::iota(order.begin(), order.end(), UnitId{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](UnitId a, UnitId b) { return keys[a] < keys[b]; });
  return order;
}

// By op: a forward op's own number; of others, the number of the latest forward op whose results
// they or those before them read.
std::vector<double> forward_numbers(const Graph& graph) {
  std::vector<double> result(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    if (graph.phase(op) == Phase::kForward) {
      result[op] = op;
      continue;
    }
    // A gradient flows through all of the network, so only forward results tell where an op is.
    double latest = -1;
    double earliest_other = graph.num_ops();
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      if (graph.phase(producer) == Phase::kForward) {
        latest = std::max(latest, result[producer]);
      } else {
        earliest_other = std::min(earliest_other, result[producer]);
      }
    }
    result[op] = latest >= 0 ? latest : earliest_other;
  }
  return result;
}

// The number of the op that takes longest, for every unit.
std::vector<double> numbers_of_units(const UnitGraph& units, const std::vector<double>& of_op) {
  const Problem& problem = units.problem();
  std::vector<double> result(units.size());
  std::vector<Nanoseconds> longest(units.size(), -1);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    check_time_at(op);
    const UnitId unit = units.unit_of_op(op);
    if (problem.mean_duration(op) <= longest[unit]) continue;
    longest[unit] = problem.mean_duration(op);
    result[unit] = of_op[op];
  }
  return result;
}

std::vector<double> module_numbers(const Graph& graph) {
  const Modules modules = infer_modules(graph);
  const RecurrentLayers layers = find_recurrent_layers(graph, modules);
  std::vector<double> result;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    const std::uint32_t module = modules.of_op[op];
    // A fraction keeps modules of one layer in their order.
    const double within = static_cast<double>(module) / static_cast<double>(modules.size() + 1);
    result.push_back(layers.count > 0 ? layers.of_module[module] + within : module);
  }
  return result;
}

}  // namespace

std::vector<double> kept_bytes(const UnitGraph& units) {
  const Problem& problem = units.problem();
  const Graph& graph = problem.graph();
  std::vector<double> kept(units.size());
  std::vector<double> largest(units.size());
  bool trains = false;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    const UnitId unit = units.unit_of_op(op);
    kept[unit] += static_cast<double>(problem.resident_bytes(op));
    if (problem.resident_bytes(op) > 0) continue;
    const bool forward = graph.phase(op) == Phase::kForward;
    trains = trains || !forward;
    for (const TensorId tensor : graph.outputs(op)) {
      const auto bytes = static_cast<double>(graph.memory_bytes(tensor));
      const auto readers = graph.consumers(tensor);
      if (!forward) {
        kept[unit] += kBackwardShare * bytes;
      } else if (std::any_of(readers.begin(), readers.end(),
                             [&](OpId reader) { return graph.phase(reader) != Phase::kForward; })) {
        kept[unit] += bytes;
      }
      largest[unit] = std::max(largest[unit], bytes);
    }
  }
  if (!trains) {
    for (UnitId unit = 0; unit < units.size(); ++unit) kept[unit] += largest[unit];
  }
  return kept;
}

std::vector<UnitId> order_along(const UnitGraph& units, Line line) {
  const Graph& graph = units.problem().graph();
  if (line == Line::kLocality) return locality_order(units);
  return sorted_by(numbers_of_units(
      units, line == Line::kDepth ? forward_numbers(graph) : module_numbers(graph)));
}

Coordinates coordinates_of(const UnitGraph& units, const std::vector<UnitId>& order,
                           const std::vector<double>& kept) {
  std::vector<double> time;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    check_time_at(unit);
    time.push_back(static_cast<double>(units.mean_duration(unit)));
  }
  return {.time = shares_before(order, time), .memory = shares_before(order, kept)};
}

}  // namespace emplace::learn
