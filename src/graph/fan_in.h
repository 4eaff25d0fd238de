// How wide weights are, from which their first values follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"

#include "graph/graph.h"

namespace emplace {

struct WeightReader {
  OpId op = kNoOp;
  std::size_t input = 0;
};

// The first op that computes with the tensor, beyond those that only show it, cut it or put it
// together.
WeightReader first_reader(const Graph& graph, TensorId tensor);

// How many inputs a weight's outputs are sums over. `shape`: the whole weight's, where the tensor
// is a part of it.
std::int64_t fan_in(const Graph& graph, const WeightReader& reader,
                    std::span<const std::int64_t> shape);

// The attribute of a parameter in another shape than it was made for: its fan-in before, and 0 of
// what began with zeros, as biases do.
inline constexpr const char* kFanInAttribute = "fan_in";

}  // namespace emplace
