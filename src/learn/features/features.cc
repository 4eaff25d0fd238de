// Describes units by sums, shares and maxima over their ops, one column at a time.
//
// Every column is about -1 .. 1 on every graph: sizes by their logarithm, times in parts of the
// mean unit's, places as parts of the order or of the longest path, kinds as shares of a unit's
// ops. Columns are added in a fixed order, which trained policies depend on: their number is
// checked, and a change of them needs another version of policy files
// (learn/general/policy_file.cc).
//
// O(ops x devices + edges), but for adjacency_features, which is quadratic in units.
#include "learn/features/features.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include <fmt/core.h>

#include "base/check.h"

#include "cost/op_class.h"

#include "placer/ranks.h"

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

constexpr std::int64_t kDims = 4;
constexpr std::int64_t kPhases = 3;

// Sizes span many orders of magnitude: a terabyte and a million-element dimension are about 1.
float log_scaled(double value, double bits) {
  return static_cast<float>(std::log2(1 + std::max(0.0, value)) / bits);
}

// Sums over the ops of each unit.
struct Totals {
  explicit Totals(const UnitGraph& units)
      : ops(units.size()),
        flops(units.size()),
        written(units.size()),
        resident(units.size()),
        temporary(units.size()),
        largest(units.size(), kNoTensor),
        head(units.size(), 1),
        tail(units.size()) {
    const Problem& problem = units.problem();
    const Graph& graph = problem.graph();
    const std::vector<Nanoseconds> up = upward_ranks(problem);
    const std::vector<Nanoseconds> down = downward_ranks(problem);
    double longest = 1;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      check_time_at(op);
      longest = std::max(longest, static_cast<double>(up[op]));
    }
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      check_time_at(op);
      const UnitId unit = units.unit_of_op(op);
      ++ops[unit];
      flops[unit] += static_cast<double>(graph.flops(op).value_or(0));
      resident[unit] += static_cast<double>(problem.resident_bytes(op));
      temporary[unit] = std::max(temporary[unit], static_cast<double>(graph.temp_bytes(op)));
      head[unit] = std::min(head[unit], static_cast<double>(down[op]) / longest);
      tail[unit] = std::max(tail[unit], static_cast<double>(up[op]) / longest);
      for (const TensorId tensor : graph.outputs(op)) {
        written[unit] += static_cast<double>(graph.bytes(tensor));
        if (largest[unit] == kNoTensor || graph.bytes(tensor) > graph.bytes(largest[unit])) {
          largest[unit] = tensor;
        }
      }
    }
  }

  static constexpr TensorId kNoTensor = ~TensorId{0};
  std::vector<double> ops, flops, written, resident, temporary;
  std::vector<TensorId> largest;
  std::vector<double> head, tail;  // shares of the longest path: before it, from its first op on
};

// Columns are filled one after the other.
class Table {
 public:
  Table(UnitId units, std::int64_t columns) {
    matrix_.rows = units;
    matrix_.columns = columns;
    matrix_.values.assign(static_cast<std::size_t>(units * columns), 0);
  }

  std::int64_t begin(std::string_view name) {
    names_.columns.emplace_back(name);
    return static_cast<std::int64_t>(names_.columns.size()) - 1;
  }
  template <class Value>
  void column(std::string_view name, const Value& value) {
    const std::int64_t at = begin(name);
    for (std::int64_t unit = 0; unit < matrix_.rows; ++unit) {
      matrix_.at(unit, at) = value(static_cast<UnitId>(unit));
    }
  }
  Matrix& matrix() { return matrix_; }
  FeatureNames& names() { return names_; }

 private:
  Matrix matrix_;
  FeatureNames names_;
};

void add_types(Table& table, const UnitGraph& units, const Totals& totals) {
  const TypeNumbers types = number_types(units.problem().graph());
  const std::int64_t first = table.begin("type 0");
  for (std::uint32_t type = 1; type < types.count; ++type) {
    table.begin(fmt::format("type {}", type));
  }
  for (OpId op = 0; op < types.of_op.size(); ++op) {
    check_time_at(op);
    const UnitId unit = units.unit_of_op(op);
    table.matrix().at(unit, first + types.of_op[op]) += static_cast<float>(1 / totals.ops[unit]);
  }
}

void add_classes(Table& table, const UnitGraph& units, const Totals& totals) {
  const Graph& graph = units.problem().graph();
  const auto first = static_cast<std::int64_t>(table.names().columns.size());
  for (std::size_t c = 0; c < kNumOpClasses; ++c) {
    table.begin(op_class_name(static_cast<OpClass>(c)));
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    const UnitId unit = units.unit_of_op(op);
    const OpClass op_class = classify(graph.type(op), graph.phase(op)).op_class;
    table.matrix().at(unit, first + static_cast<std::int64_t>(op_class)) +=
        static_cast<float>(1 / totals.ops[unit]);
  }
}

void add_shapes(Table& table, const UnitGraph& units, const Totals& totals) {
  const Graph& graph = units.problem().graph();
  for (std::int64_t dim = 0; dim < kDims; ++dim) {
    table.column(fmt::format("dimension {} of the largest output", dim), [&](UnitId unit) {
      const TensorId tensor = totals.largest[unit];
      if (tensor == Totals::kNoTensor || !graph.has_shape(tensor)) return 0.0F;
      const auto shape = graph.shape(tensor);
      if (dim >= static_cast<std::int64_t>(shape.size())) return 0.0F;
      return log_scaled(static_cast<double>(shape[static_cast<std::size_t>(dim)]), 20);
    });
  }
}

void add_sizes(Table& table, const UnitGraph& units, const Totals& totals) {
  const auto bytes = [&](const char* name, const std::vector<double>& values) {
    table.column(name, [&](UnitId unit) { return log_scaled(values[unit], 40); });
  };
  bytes("bytes written", totals.written);
  bytes("bytes kept for the step", totals.resident);
  bytes("bytes of temporaries", totals.temporary);
  table.column("bytes sent", [&](UnitId unit) {
    return log_scaled(static_cast<double>(units.output_bytes(unit)), 40);
  });
  table.column("FLOPs", [&](UnitId unit) { return log_scaled(totals.flops[unit], 50); });
}

double mean_time(const UnitGraph& units) {
  double mean = 0;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    check_time_at(unit);
    mean += static_cast<double>(units.mean_duration(unit)) / units.size();
  }
  return mean;
}

void add_mean_time(Table& table, const UnitGraph& units) {
  const double mean = mean_time(units);
  table.column("mean time", [&](UnitId unit) {
    return mean > 0 ? log_scaled(static_cast<double>(units.mean_duration(unit)) / mean, 8) : 0.0F;
  });
}

void add_times(Table& table, const UnitGraph& units) {
  const Problem& problem = units.problem();
  const double mean = mean_time(units);
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    std::vector<double> time(units.size());
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      check_time_at(op);
      time[units.unit_of_op(op)] += static_cast<double>(problem.duration(op, device));
    }
    // In multiples of the mean unit, so that it says who is large here, not how fast the model is.
    table.column(fmt::format("time on device {}", device),
                 [&](UnitId unit) { return mean > 0 ? log_scaled(time[unit] / mean, 8) : 0.0F; });
  }
}

void add_place_in_graph(Table& table, const UnitGraph& units, const Totals& totals) {
  table.column("units read", [&](UnitId unit) {
    return log_scaled(static_cast<double>(units.predecessors(unit).size()), 8);
  });
  table.column("units that read it", [&](UnitId unit) {
    return log_scaled(static_cast<double>(units.successors(unit).size()), 8);
  });
  table.column("place in the order", [&](UnitId unit) {
    return static_cast<float>(2.0 * (unit + 0.5) / units.size() - 1);
  });
  table.column("longest path before",
               [&](UnitId unit) { return static_cast<float>(2 * totals.head[unit] - 1); });
  table.column("longest path after",
               [&](UnitId unit) { return static_cast<float>(2 * totals.tail[unit] - 1); });
}

void add_phases(Table& table, const UnitGraph& units, const Totals& totals) {
  const Graph& graph = units.problem().graph();
  const std::int64_t first = table.begin("share of forward ops");
  table.begin("share of backward ops");
  table.begin("share of updates");
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    const UnitId unit = units.unit_of_op(op);
    table.matrix().at(unit, first + static_cast<std::int64_t>(graph.phase(op))) +=
        static_cast<float>(1 / totals.ops[unit]);
  }
}

// With so many columns of what ops are, and of their times.
template <class AddKinds, class AddTimes>
Matrix describe(const UnitGraph& units, std::int64_t kinds, std::int64_t times,
                const AddKinds& add_kinds, const AddTimes& add_their_times, FeatureNames* names) {
  const std::int64_t columns = kinds + kDims + 5 + times + 5 + kPhases;
  Table table(units.size(), columns);
  const Totals totals(units);
  add_kinds(table, units, totals);
  add_shapes(table, units, totals);
  add_sizes(table, units, totals);
  add_their_times(table, units);
  add_place_in_graph(table, units, totals);
  add_phases(table, units, totals);
  EMPLACE_CHECK(static_cast<std::int64_t>(table.names().columns.size()) == columns);
  if (names != nullptr) *names = std::move(table.names());
  return std::move(table.matrix());
}

}  // namespace

TypeNumbers number_types(const Graph& graph) {
  TypeNumbers result;
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    const auto next =
        std::min(static_cast<std::uint32_t>(numbers.size()), TypeNumbers::kMostTypes - 1);
    const auto [at, added] = numbers.emplace(graph.type(op), next);
    result.of_op.push_back(at->second);
    result.count = std::max(result.count, at->second + 1);
  }
  return result;
}

Matrix unit_features(const UnitGraph& units, Features features, FeatureNames* names) {
  const std::uint32_t types = number_types(units.problem().graph()).count;
  if (features == Features::kAll) {
    return describe(units, types, units.num_devices(), add_types, add_times, names);
  }
  Table table(units.size(), types + kDims);
  const Totals totals(units);
  add_types(table, units, totals);
  add_shapes(table, units, totals);
  if (names != nullptr) *names = std::move(table.names());
  return std::move(table.matrix());
}

Matrix general_features(const UnitGraph& units, FeatureNames* names) {
  return describe(units, kNumOpClasses, 1, add_classes, add_mean_time, names);
}

Matrix adjacency_features(const UnitGraph& units) {
  Matrix result;
  result.rows = units.size();
  result.columns = 2 * result.rows;
  result.values.assign(static_cast<std::size_t>(result.rows * result.columns), 0);
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    check_time_at(unit);
    for (const UnitId next : units.successors(unit)) {
      result.at(unit, next) = 1;
      result.at(next, result.rows + unit) = 1;
    }
  }
  return result;
}

}  // namespace emplace::learn
