// Shape and element type of a tensor, and counting with shapes. Products saturate: a shape that is
// too large for 64 bits is refused by GraphBuilder, not by what counts with it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

#include "graph/dtype.h"

namespace emplace {

using Shape = std::vector<std::int64_t>;

struct TensorType {
  Shape shape = {};
  DType dtype = DType::kUnknown;  // kUnknown: no tensor, or one that is known by its bytes alone
  Bytes bytes = 0;
};

std::int64_t saturating_multiply(std::int64_t a, std::int64_t b);
std::int64_t saturating_add(std::int64_t a, std::int64_t b);

// Product of the dimensions, none of which is negative.
std::int64_t count_elements(std::span<const std::int64_t> shape);
Bytes tensor_bytes(std::span<const std::int64_t> shape, DType dtype);

TensorType tensor_type(Shape shape, DType dtype);

}  // namespace emplace
