#include "learn/encoders/small_product.h"

#include <cstring>

#include "learn/encoders/vector_loops.h"

namespace emplace::learn {
namespace {

// Sixteen numbers that compilers keep in registers, however many of them that takes.
using Lanes = float __attribute__((vector_size(64)));
constexpr std::int64_t kLanes = 16;

struct Block {
  const float* a;
  const float* b;
  const float* start;
  float* result;
  std::int64_t inner;
  std::int64_t columns;
};

// kRows rows of kLanes columns, whose sums stay in registers.
template <std::int64_t kRows>
EMPLACE_ALWAYS_INLINE void multiply_block(const Block& at) {
  Lanes sums[kRows];
  for (std::int64_t row = 0; row < kRows; ++row) {
    if (at.start != nullptr) {
      std::memcpy(&sums[row], at.start + row * at.columns, sizeof(Lanes));
    } else {
      sums[row] = Lanes{};
    }
  }
  for (std::int64_t k = 0; k < at.inner; ++k) {
    Lanes factors;
    std::memcpy(&factors, at.b + k * at.columns, sizeof(Lanes));
    for (std::int64_t row = 0; row < kRows; ++row) sums[row] += at.a[row * at.inner + k] * factors;
  }
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::memcpy(at.result + row * at.columns, &sums[row], sizeof(Lanes));
  }
}

template <std::int64_t kRows>
EMPLACE_ALWAYS_INLINE void multiply_rows(const Block& at) {
  std::int64_t column = 0;
  for (; column + kLanes <= at.columns; column += kLanes) {
    multiply_block<kRows>({at.a, at.b + column, at.start == nullptr ? nullptr : at.start + column,
                           at.result + column, at.inner, at.columns});
  }
  for (; column < at.columns; ++column) {
    for (std::int64_t row = 0; row < kRows; ++row) {
      float sum = at.start == nullptr ? 0 : at.start[row * at.columns + column];
      for (std::int64_t k = 0; k < at.inner; ++k) {
        sum += at.a[row * at.inner + k] * at.b[k * at.columns + column];
      }
      at.result[row * at.columns + column] = sum;
    }
  }
}

}  // namespace

EMPLACE_FOR_EACH_PROCESSOR
void add_small_product(const float* a, const float* b, const float* start, float* result,
                       std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  std::int64_t row = 0;
  const auto rest = [&] {
    return Block{a + row * inner,        b,     start == nullptr ? nullptr : start + row * columns,
                 result + row * columns, inner, columns};
  };
  for (; row + 5 <= rows; row += 5) multiply_rows<5>(rest());
  for (; row + 2 <= rows; row += 2) multiply_rows<2>(rest());
  for (; row < rows; ++row) multiply_rows<1>(rest());
}

}  // namespace emplace::learn
