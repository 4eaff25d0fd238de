// The innermost loops of elimination and message passing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "selection/selection_problem.h"

namespace emplace {

// Doubles may go far beyond what is forbidden; integers stop there.
inline double limited_sum(double a, double b) {
  return a + b;
}
inline std::int64_t limited_sum(std::int64_t a, std::int64_t b) {
  return add_costs(a, b);
}

template <class Value>
inline void add_into(Value* __restrict sum, const Value* __restrict term, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = limited_sum(sum[i], term[i]);
}

template <class Value>
inline void add_to(Value* __restrict sum, const Value* __restrict a, const Value* __restrict b,
                   std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = limited_sum(a[i], b[i]);
}

template <class Value>
inline Value least(const Value* values, std::size_t count) {
  Value result = values[0];
  for (std::size_t i = 1; i < count; ++i) result = values[i] < result ? values[i] : result;
  return result;
}

// out[j] = the least of from[i] + table[i * width + j].
void min_plus(double* out, const double* from, const double* table, std::size_t rows,
              std::size_t width);

}  // namespace emplace
