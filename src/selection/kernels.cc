#include "selection/kernels.h"

#include "base/simd.h"

namespace emplace {

EMPLACE_FOR_EACH_PROCESSOR
void min_plus(double* out, const double* from, const double* table, std::size_t rows,
              std::size_t width) {
  double* __restrict result = out;
  for (std::size_t j = 0; j < width; ++j) result[j] = from[0] + table[j];
  for (std::size_t i = 1; i < rows; ++i) {
    const double* __restrict row = table + i * width;
    const double base = from[i];
    for (std::size_t j = 0; j < width; ++j) {
      const double sum = base + row[j];
      result[j] = sum < result[j] ? sum : result[j];
    }
  }
}

}  // namespace emplace
