#include "graph/dtype.h"

#include <array>

namespace emplace {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int bits;
};

// A string's size is that of the reference that a framework keeps for it.
constexpr std::array<Row, 20> kTypes{{
    {DType::kUnknown, "unknown", 0},
    {DType::kBool, "bool", 8},
    {DType::kInt4, "int4", 4},
    {DType::kInt8, "int8", 8},
    {DType::kInt16, "int16", 16},
    {DType::kInt32, "int32", 32},
    {DType::kInt64, "int64", 64},
    {DType::kUInt4, "uint4", 4},
    {DType::kUInt8, "uint8", 8},
    {DType::kUInt16, "uint16", 16},
    {DType::kUInt32, "uint32", 32},
    {DType::kUInt64, "uint64", 64},
    {DType::kFloat8, "float8", 8},
    {DType::kFloat16, "float16", 16},
    {DType::kBFloat16, "bfloat16", 16},
    {DType::kFloat32, "float32", 32},
    {DType::kFloat64, "float64", 64},
    {DType::kComplex64, "complex64", 64},
    {DType::kComplex128, "complex128", 128},
    {DType::kString, "string", 64},
}};

}  // namespace

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& row : kTypes) {
    if (row.name == name && row.dtype != DType::kUnknown) return row.dtype;
  }
  if (name.starts_with("float8_")) return DType::kFloat8;  // float8_e4m3fn and its kin
  return std::nullopt;
}

std::string_view dtype_name(DType dtype) {
  return kTypes[static_cast<std::size_t>(dtype)].name;
}

int dtype_bits(DType dtype) {
  return kTypes[static_cast<std::size_t>(dtype)].bits;
}

}  // namespace emplace
