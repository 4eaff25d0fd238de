// Element types of tensors, by the names that PyTorch and NumPy use.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace emplace {

enum class DType : std::uint8_t {
  kUnknown,  // the tensor was given by its bytes alone
  kBool,
  kInt4,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt4,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat8,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  kString,
};

std::optional<DType> parse_dtype(std::string_view name);
std::string_view dtype_name(DType dtype);
int dtype_bits(DType dtype);  // 0 for kUnknown

}  // namespace emplace
