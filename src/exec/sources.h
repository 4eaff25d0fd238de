// Contents for a graph's parameters, buffers and inputs where there are none: random numbers that
// depend on the seed and the op's name alone, so that two graphs with the same sources get the
// same.
#pragma once

#include <cstdint>
#include <functional>

#include "graph/graph.h"

#include "exec/compiled_op.h"

namespace emplace::exec {

// The tensor of an op that is a parameter, buffer, input or constant.
using SourceValue = std::function<Tensor(const Graph&, OpId op, std::size_t output)>;

struct SeededNumbers {
  std::uint64_t seed = 0;
  double low = -1;  // of parameters and inputs
  double high = 1;
};

// In float64. Integers are numbers of rows or classes that everything which reads them has. Buffers
// are between 0.5 and 1.5, as they may hold variances.
SourceValue seeded_sources(SeededNumbers numbers = {});

// What training begins with, as the target has it: weights of a size that suits the number of
// inputs that they are summed over, scales of one, biases and the optimizer's state of zero, inputs
// about normally distributed, integers as above. Sources of a divided graph are parts of those of
// the whole.
SourceValue training_sources(std::uint64_t seed, const OpTarget& target = {});

// What a constant's attribute `value` says: int64 or float64. Throws an Error where it does not.
Tensor constant_value(const Graph& graph, OpId op);

// Below which numbers in the tensor stay, so that everything which takes them as numbers of rows or
// classes has those.
std::int64_t limit_of_numbers(const Graph& graph, TensorId tensor);

}  // namespace emplace::exec
