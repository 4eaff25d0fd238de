// What policies know of units, one implementation for all. Every column is scaled to about -1 .. 1,
// whatever the graph: docs/learned.md lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learn/features/feature_choice.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Row-major.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<float> values;

  float& at(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  float at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

// Op types in the order of the graph's first use; those beyond `kMostTypes` share the last number.
struct TypeNumbers {
  static constexpr std::uint32_t kMostTypes = 64;
  std::vector<std::uint32_t> of_op;
  std::uint32_t count = 0;
};
TypeNumbers number_types(const Graph& graph);

struct FeatureNames {
  std::vector<std::string> columns;
};

// By unit: the share of its ops of each type and the shape of its largest output, which is what
// ColocRL, HDP and GDP have; and where all is told, bytes written, kept for the step and in
// temporaries, FLOPs; time on each device; neighbours; place in the order; forward, backward or
// update.
Matrix unit_features(const UnitGraph& units, Features features = Features::kAll,
                     FeatureNames* names = nullptr);

// The same columns whatever the graph and the devices, for policies that serve many: classes of ops
// (cost/op_class.h) in place of types, and the mean time.
Matrix general_features(const UnitGraph& units, FeatureNames* names = nullptr);

// By unit, with two columns for every unit: the first block has 1 where this one feeds that one,
// the second where it is fed by it. Merged units may do both. Quadratic: for a few hundred units.
Matrix adjacency_features(const UnitGraph& units);

}  // namespace emplace::learn
