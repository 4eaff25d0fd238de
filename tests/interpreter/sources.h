// Contents for a graph's parameters, buffers and inputs where there are none: random numbers that
// depend on the seed and the op's name alone, so that two graphs with the same sources get the
// same.
#pragma once

#include <cstdint>

#include "interpreter/interpreter.h"

namespace emplace::exec {

struct SeededNumbers {
  std::uint64_t seed = 0;
  double low = -1;  // of parameters and inputs
  double high = 1;
};

// Integers are numbers of rows or classes that everything which reads them has. Buffers are between
// 0.5 and 1.5, as they may hold variances.
SourceValue seeded_sources(SeededNumbers numbers = {});

// What a constant's attribute `value` says. Throws an Error where it does not.
torch::Tensor constant_value(const Graph& graph, OpId op);

}  // namespace emplace::exec
