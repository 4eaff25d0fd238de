#include "selection/kernels.h"

// Compiled for several generations of processors, of which the program takes its own.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define EMPLACE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EMPLACE_CLONES
#endif

namespace emplace {

EMPLACE_CLONES
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
