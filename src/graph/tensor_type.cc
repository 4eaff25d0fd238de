#include "graph/tensor_type.h"

#include <limits>

namespace emplace {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMax : product;
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kMax : sum;
}

std::int64_t count_elements(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    if (dim == 0) return 0;
    count = saturating_multiply(count, dim);
  }
  return count;
}

Bytes tensor_bytes(std::span<const std::int64_t> shape, DType dtype) {
  const std::int64_t bits = saturating_multiply(count_elements(shape), dtype_bits(dtype));
  return bits / 8 + (bits % 8 != 0 ? 1 : 0);
}

TensorType tensor_type(Shape shape, DType dtype) {
  const Bytes bytes = tensor_bytes(shape, dtype);
  return {.shape = std::move(shape), .dtype = dtype, .bytes = bytes};
}

}  // namespace emplace
