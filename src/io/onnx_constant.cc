#include "io/onnx_constant.h"

#include <bit>
#include <cmath>

#include "base/error.h"

#include "io/onnx_value.h"

namespace emplace {
namespace {

using onnx::TensorProto;

std::vector<long double> numbers_of(const AttributeValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return {static_cast<long double>(*integer)};
  }
  if (const auto* real = std::get_if<double>(&value)) return {static_cast<long double>(*real)};
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    return {integers->begin(), integers->end()};
  }
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    return {reals->begin(), reals->end()};
  }
  fail_input("attributes: value: expected a number or a list of numbers");
}

// IEEE 754's binary16, rounded to nearest, ties to even.
std::int32_t half_bits(double value) {
  constexpr int kMantissaBits = 10;
  constexpr int kBias = 15;
  constexpr int kInfinity = 0x7C00;
  constexpr double kTooLarge = 65520;  // rounds to beyond the largest, 65504
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  if (std::isnan(value)) return sign | kInfinity | 1;
  if (size >= kTooLarge) return sign | kInfinity;
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // in [1/2, 1)
  if (exponent < 2 - kBias) {
    // Subnormal; one that is rounded up to the least normal number has just its bits.
    return sign | static_cast<int>(std::nearbyint(std::ldexp(size, kMantissaBits + kBias - 1)));
  }
  const int mantissa = static_cast<int>(std::nearbyint(std::ldexp(fraction, kMantissaBits + 1)));
  return sign | (((exponent + kBias - 2) << kMantissaBits) + mantissa);
}

// The upper half of binary32, rounded to nearest, ties to even.
std::int32_t bfloat_bits(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return static_cast<std::int32_t>((bits >> 16) | 1);
  return static_cast<std::int32_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

bool is_float(int elem_type) {
  return elem_type == TensorProto::FLOAT || elem_type == TensorProto::DOUBLE ||
         elem_type == TensorProto::FLOAT16 || elem_type == TensorProto::BFLOAT16;
}

}  // namespace

int onnx_elem_type(DType dtype) {
  if (dtype == DType::kUnknown) return TensorProto::UNDEFINED;
  for (int type = TensorProto::FLOAT; type <= TensorProto::BFLOAT16; ++type) {
    if (onnx_dtype(type) == dtype) return type;
  }
  return TensorProto::UNDEFINED;
}

TensorProto constant_proto(const AttributeValue& value, int elem_type, const Shape& shape) {
  SmallTensor tensor{.elem_type = elem_type, .dims = shape, .values = numbers_of(value)};
  const std::int64_t wanted = count_elements(shape);
  if (static_cast<std::int64_t>(tensor.values.size()) != wanted) {
    fail_input("attributes: value: has {} numbers; the tensor's shape says {}",
               tensor.values.size(), wanted);
  }
  if (!is_float(elem_type)) {
    for (const long double number : tensor.values) {
      if (std::trunc(number) == number) continue;
      fail_input("attributes: value: {} is not a whole number, as the tensor's are",
                 static_cast<double>(number));
    }
  }
  if (elem_type != TensorProto::FLOAT16 && elem_type != TensorProto::BFLOAT16) {
    return to_proto(tensor);
  }
  TensorProto proto;
  proto.set_data_type(elem_type);
  for (const std::int64_t dim : shape) proto.add_dims(dim);
  for (const long double number : tensor.values) {
    const auto real = static_cast<double>(number);
    proto.add_int32_data(elem_type == TensorProto::FLOAT16 ? half_bits(real) : bfloat_bits(real));
  }
  return proto;
}

}  // namespace emplace
