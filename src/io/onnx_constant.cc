#include "io/onnx_constant.h"

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
  // As the reader keeps what no number of an attribute is.
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && *text == "nan") return {std::nanl("")};
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    return {integers->begin(), integers->end()};
  }
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    return {reals->begin(), reals->end()};
  }
  fail_input("attributes: value: expected a number or a list of numbers");
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
  if (tensor.is_integral()) {
    for (const long double number : tensor.values) {
      if (std::trunc(number) == number) continue;
      fail_input("attributes: value: {} is not a whole number, as the tensor's are",
                 static_cast<double>(number));
    }
  }
  return to_proto(tensor);
}

}  // namespace emplace
