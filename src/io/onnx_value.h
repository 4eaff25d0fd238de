// What is known of a value (a named tensor) of an ONNX graph while it is read: its type, and its
// contents where they are few and shapes may depend on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <onnx/onnx_pb.h>

#include "graph/tensor_type.h"

namespace emplace {

// The contents of a small tensor, whatever its element type: a long double holds every 64-bit
// integer and every float exactly, on all platforms that g++ and clang target on Debian.
struct SmallTensor {
  static constexpr std::int64_t kMaxElements = 256;

  int elem_type = 0;  // onnx::TensorProto_DataType
  std::vector<std::int64_t> dims = {};
  std::vector<long double> values = {};  // row-major, as many as dims say

  bool is_integral() const;
  std::int64_t integer(std::size_t i) const;  // clamped to 64 bits
};

// Nothing when the tensor is too large, stored elsewhere, of another type, or damaged.
std::optional<SmallTensor> parse_small_tensor(const onnx::TensorProto& proto);
onnx::TensorProto to_proto(const SmallTensor& tensor);

// As a TensorType it is what `settle` finds; its dtype is kUnknown for a sequence, an optional or a
// map.
struct OnnxValue : TensorType {
  onnx::TypeProto type = {};  // as far as it is known
  std::optional<SmallTensor> data = std::nullopt;

  bool known = false;  // set by `settle`

  // Sets `known`, shape, dtype and bytes once `type` is a tensor whose element type and dimensions
  // are all known.
  void settle();
  // The same for a value that is no tensor, which is as large as what it was made of.
  void settle_as_bytes(Bytes size);
};

// The values of a graph by name; a body (of an If or a Loop) also sees those around it.
class OnnxScope {
 public:
  explicit OnnxScope(const OnnxScope* outer = nullptr) : outer_(outer) {}

  const OnnxValue* find(const std::string& name) const;
  OnnxValue& own(const std::string& name) { return values_[name]; }  // added if new

 private:
  const OnnxScope* outer_;
  std::unordered_map<std::string, OnnxValue> values_;
};

// kUnknown where ONNX has no such element type.
DType onnx_dtype(int elem_type);

onnx::TypeProto tensor_type_proto(int elem_type, const std::vector<std::int64_t>& shape);
// Whether it is a tensor with every dimension known.
bool is_complete(const onnx::TypeProto& type);
// Fills what `into` does not know from `from`; what it knows stays.
void merge_type(const onnx::TypeProto& from, onnx::TypeProto& into);
// "float32[batch, 3, ?]", for messages.
std::string describe_type(const onnx::TypeProto& type);

}  // namespace emplace
