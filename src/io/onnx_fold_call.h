// Shared by the files that fold arithmetic on shapes (onnx_fold.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "io/onnx_node.h"
#include "io/onnx_value.h"

namespace emplace::onnx_fold {

using Folded = std::optional<SmallTensor>;
using Dims = std::vector<std::int64_t>;

// One node with its inputs' contents; the operators below return nothing where these are missing
// or do not fit the operator, which shape inference then reports.
struct Call {
  const onnx::NodeProto& node;
  const std::vector<const OnnxValue*>& inputs;

  const OnnxValue* input(std::size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  const SmallTensor* data(std::size_t i) const {
    return input(i) != nullptr && input(i)->data ? &*input(i)->data : nullptr;
  }
  // Axes and the like, which older opsets give as an attribute and newer ones as an input.
  std::optional<Dims> ints(std::size_t i, std::string_view attribute) const {
    if (const auto* found = find_attribute(node, attribute)) {
      return Dims(found->ints().begin(), found->ints().end());
    }
    const SmallTensor* tensor = data(i);
    if (tensor == nullptr) return std::nullopt;
    Dims values;
    for (std::size_t k = 0; k < tensor->values.size(); ++k) values.push_back(tensor->integer(k));
    return values;
  }
  bool given(std::size_t i, std::string_view attribute) const {
    return input(i) != nullptr || find_attribute(node, attribute) != nullptr;
  }
};

// The shape that both broadcast to; nothing when they do not, or it is too large to go on with.
std::optional<Dims> broadcast(const Dims& a, const Dims& b);
// `dims` must be what the tensor's own broadcast to.
SmallTensor expand_to(const SmallTensor& tensor, const Dims& dims);
SmallTensor integers(const Dims& values);

// The operators that ask for shapes or rearrange elements; those that compute are in onnx_fold.cc.
Folded fold_shape(const Call& call);
Folded fold_size(const Call& call);
Folded fold_identity(const Call& call);
Folded fold_cast(const Call& call);
Folded fold_gather(const Call& call);
Folded fold_concat(const Call& call);
Folded fold_unsqueeze(const Call& call);
Folded fold_squeeze(const Call& call);
Folded fold_reshape(const Call& call);
Folded fold_transpose(const Call& call);
Folded fold_slice(const Call& call);
Folded fold_where(const Call& call);
Folded fold_range(const Call& call);
Folded fold_constant_of_shape(const Call& call);
Folded fold_expand(const Call& call);

}  // namespace emplace::onnx_fold
