// Products of matrices of a few rows, as recurrent networks need one after the other: libtorch
// takes longer to get to such a product than the product takes.
#pragma once

#include <cstdint>

namespace emplace::learn {

// Above so many rows libtorch's products are as fast.
constexpr std::int64_t kFewRows = 32;

// result = start + a b, row-major: a [rows, inner], b [inner, columns], the others [rows, columns].
// `start` may be `result`, or null: zeros.
void add_small_product(const float* a, const float* b, const float* start, float* result,
                       std::int64_t rows, std::int64_t inner, std::int64_t columns);

}  // namespace emplace::learn
