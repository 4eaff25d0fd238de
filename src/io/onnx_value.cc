#include "io/onnx_value.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/check.h"

#include "io/narrow_floats.h"

namespace emplace {
namespace {

using onnx::TensorProto;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// Debian's targets are little-endian, as raw_data is.
template <class T>
bool read_raw(const std::string& raw, std::vector<long double>& values) {
  if (raw.size() != values.size() * sizeof(T)) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, raw.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<long double>(element);
  }
  return true;
}

template <class T, class Field>
bool read(const TensorProto& proto, const Field& field, std::vector<long double>& values) {
  if (proto.has_raw_data()) return read_raw<T>(proto.raw_data(), values);
  if (static_cast<std::size_t>(field.size()) != values.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<long double>(field[static_cast<int>(i)]);
  }
  return true;
}

bool read_narrow(const TensorProto& proto, double (*decode)(std::uint16_t),
                 std::vector<long double>& values) {
  if (!read<std::uint16_t>(proto, proto.int32_data(), values)) return false;
  for (long double& value : values) {
    if (value < 0 || value > std::numeric_limits<std::uint16_t>::max()) return false;
    value = decode(static_cast<std::uint16_t>(value));
  }
  return true;
}

bool read_values(const TensorProto& proto, std::vector<long double>& values) {
  switch (proto.data_type()) {
    case TensorProto::FLOAT:
      return read<float>(proto, proto.float_data(), values);
    case TensorProto::DOUBLE:
      return read<double>(proto, proto.double_data(), values);
    case TensorProto::INT64:
      return read<std::int64_t>(proto, proto.int64_data(), values);
    case TensorProto::INT32:
      return read<std::int32_t>(proto, proto.int32_data(), values);
    case TensorProto::INT16:
      return read<std::int16_t>(proto, proto.int32_data(), values);
    case TensorProto::UINT16:
      return read<std::uint16_t>(proto, proto.int32_data(), values);
    case TensorProto::INT8:
      return read<std::int8_t>(proto, proto.int32_data(), values);
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return read<std::uint8_t>(proto, proto.int32_data(), values);
    case TensorProto::UINT32:
      return read<std::uint32_t>(proto, proto.uint64_data(), values);
    case TensorProto::UINT64:
      return read<std::uint64_t>(proto, proto.uint64_data(), values);
    case TensorProto::FLOAT16:
      return read_narrow(proto, half_of, values);
    case TensorProto::BFLOAT16:
      return read_narrow(proto, bfloat_of, values);
    default:
      return false;
  }
}

bool is_real(int elem_type) {
  return elem_type == TensorProto::FLOAT || elem_type == TensorProto::DOUBLE ||
         elem_type == TensorProto::FLOAT16 || elem_type == TensorProto::BFLOAT16;
}

}  // namespace

bool SmallTensor::is_integral() const {
  return !is_real(elem_type);
}

std::int64_t SmallTensor::integer(std::size_t i) const {
  const long double value = values[i];
  if (std::isnan(value)) return 0;
  if (value >= static_cast<long double>(kMax)) return kMax;
  if (value <= static_cast<long double>(std::numeric_limits<std::int64_t>::min())) {
    return std::numeric_limits<std::int64_t>::min();
  }
  return static_cast<std::int64_t>(value);
}

std::optional<SmallTensor> parse_small_tensor(const TensorProto& proto) {
  if (proto.data_location() == TensorProto::EXTERNAL) return std::nullopt;
  SmallTensor tensor{.elem_type = proto.data_type()};
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 0) return std::nullopt;
  }
  const std::int64_t count = count_elements(tensor.dims);
  if (count > SmallTensor::kMaxElements) return std::nullopt;
  tensor.values.resize(static_cast<std::size_t>(count));
  if (!read_values(proto, tensor.values)) return std::nullopt;
  return tensor;
}

TensorProto to_proto(const SmallTensor& tensor) {
  TensorProto proto;
  proto.set_data_type(tensor.elem_type);
  for (const std::int64_t dim : tensor.dims) proto.add_dims(dim);
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    switch (tensor.elem_type) {
      case TensorProto::FLOAT:
        proto.add_float_data(static_cast<float>(tensor.values[i]));
        break;
      case TensorProto::DOUBLE:
        proto.add_double_data(static_cast<double>(tensor.values[i]));
        break;
      case TensorProto::INT64:
        proto.add_int64_data(tensor.integer(i));
        break;
      case TensorProto::FLOAT16:
        proto.add_int32_data(half_bits(static_cast<double>(tensor.values[i])));
        break;
      case TensorProto::BFLOAT16:
        proto.add_int32_data(bfloat_bits(static_cast<double>(tensor.values[i])));
        break;
      case TensorProto::UINT32:
      case TensorProto::UINT64:
        proto.add_uint64_data(static_cast<std::uint64_t>(tensor.integer(i)));
        break;
      default:
        proto.add_int32_data(static_cast<std::int32_t>(tensor.integer(i)));
    }
  }
  return proto;
}

void OnnxValue::settle() {
  if (known || !is_complete(type)) return;
  shape.clear();
  for (const auto& dim : type.tensor_type().shape().dim()) shape.push_back(dim.dim_value());
  dtype = onnx_dtype(type.tensor_type().elem_type());
  bytes = tensor_bytes(shape, dtype);
  known = true;
}

void OnnxValue::settle_as_bytes(Bytes size) {
  bytes = size;
  known = true;
}

const OnnxValue* OnnxScope::find(const std::string& name) const {
  for (const OnnxScope* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->values_.find(name);
    if (found != scope->values_.end()) return &found->second;
  }
  return nullptr;
}

DType onnx_dtype(int elem_type) {
  // Numbers above BFLOAT16 are newer than the library's headers.
  constexpr DType kByNumber[] = {
      DType::kUnknown,    DType::kFloat32,  DType::kUInt8,  DType::kInt8,   DType::kUInt16,
      DType::kInt16,      DType::kInt32,    DType::kInt64,  DType::kString, DType::kBool,
      DType::kFloat16,    DType::kFloat64,  DType::kUInt32, DType::kUInt64, DType::kComplex64,
      DType::kComplex128, DType::kBFloat16, DType::kFloat8, DType::kFloat8, DType::kFloat8,
      DType::kFloat8,     DType::kUInt4,    DType::kInt4};
  if (elem_type < 0 || elem_type >= static_cast<int>(std::size(kByNumber))) return DType::kUnknown;
  return kByNumber[elem_type];
}

onnx::TypeProto tensor_type_proto(int elem_type, const std::vector<std::int64_t>& shape) {
  onnx::TypeProto type;
  type.mutable_tensor_type()->set_elem_type(elem_type);
  auto* dims = type.mutable_tensor_type()->mutable_shape();
  for (const std::int64_t dim : shape) dims->add_dim()->set_dim_value(dim);
  return type;
}

bool is_complete(const onnx::TypeProto& type) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return false;
  if (onnx_dtype(type.tensor_type().elem_type()) == DType::kUnknown) return false;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 0) return false;
  }
  return true;
}

void merge_type(const onnx::TypeProto& from, onnx::TypeProto& into) {
  if (from.value_case() == onnx::TypeProto::VALUE_NOT_SET) return;
  if (from.value_case() != into.value_case()) {
    if (into.value_case() == onnx::TypeProto::VALUE_NOT_SET) into = from;
    return;
  }
  if (!from.has_tensor_type()) return;
  const auto& source = from.tensor_type();
  auto& target = *into.mutable_tensor_type();
  if (target.elem_type() == 0) target.set_elem_type(source.elem_type());
  if (!source.has_shape()) return;
  if (!target.has_shape() || target.shape().dim_size() != source.shape().dim_size()) {
    if (!is_complete(into)) *target.mutable_shape() = source.shape();
    return;
  }
  for (int i = 0; i < source.shape().dim_size(); ++i) {
    auto& dim = *target.mutable_shape()->mutable_dim(i);
    const bool unknown = !dim.has_dim_value() || dim.dim_value() < 0;
    if (unknown && source.shape().dim(i).has_dim_value()) {
      dim.set_dim_value(source.shape().dim(i).dim_value());
    }
  }
}

std::string describe_type(const onnx::TypeProto& type) {
  if (!type.has_tensor_type()) {
    return type.value_case() == onnx::TypeProto::VALUE_NOT_SET ? "unknown" : "not a tensor";
  }
  const auto& tensor = type.tensor_type();
  std::string text(dtype_name(onnx_dtype(tensor.elem_type())));
  if (!tensor.has_shape()) return text + " of unknown rank";
  text += '[';
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    if (i > 0) text += ", ";
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      text += fmt::format("{}", dim.dim_value());
    } else {
      text += dim.dim_param().empty() ? "?" : dim.dim_param();
    }
  }
  return text + ']';
}

}  // namespace emplace
