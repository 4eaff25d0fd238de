#include "io/onnx_guard.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/limits.h"

#include "io/onnx_node.h"

namespace emplace {
namespace {

using onnx::AttributeProto;
using onnx::NodeProto;

// Of windows, strides, paddings and block sizes, whose squares are taken.
constexpr std::int64_t kLargest = std::int64_t{1} << 31;
// Steps of a window that is padded to fit are counted one by one.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 26;

class GuardedNode {
 public:
  GuardedNode(const NodeProto& node, const std::vector<const OnnxValue*>& inputs)
      : node_(node), inputs_(inputs) {}

  const std::string& type() const { return node_.op_type(); }
  bool is_of_traditional_learning() const { return node_.domain() == "ai.onnx.ml"; }
  std::size_t num_inputs() const { return inputs_.size(); }

  bool has_rank(std::size_t input) const {
    return is_tensor(input) && inputs_[input]->type.tensor_type().has_shape();
  }
  // Of an input that has one.
  int rank(std::size_t input) const { return shape(input).dim_size(); }
  bool has_rank_of(std::size_t input, int rank) const {
    return has_rank(input) && this->rank(input) == rank;
  }
  // Nothing where it is not known.
  std::optional<std::int64_t> dim(std::size_t input, int axis) const {
    const auto& dim = shape(input).dim(axis);
    if (!dim.has_dim_value()) return std::nullopt;
    return dim.dim_value();
  }
  bool has_data(std::size_t input, std::size_t count) const {
    return data(input) != nullptr && data(input)->values.size() == count;
  }
  // The contents of an input, where they are known.
  const SmallTensor* data(std::size_t input) const {
    const bool known = input < inputs_.size() && inputs_[input] != nullptr && inputs_[input]->data;
    return known ? &*inputs_[input]->data : nullptr;
  }
  bool is_tensor(std::size_t input) const {
    return input < inputs_.size() && inputs_[input] != nullptr &&
           inputs_[input]->type.has_tensor_type();
  }
  bool is_integral(std::size_t input) const {
    if (!is_tensor(input)) return false;
    const int type = inputs_[input]->type.tensor_type().elem_type();
    return type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32;
  }

  const AttributeProto* attribute(std::string_view name) const {
    return find_attribute(node_, std::string(name));
  }
  bool integers_within(std::int64_t low, std::int64_t high) const {
    return std::all_of(node_.attribute().begin(), node_.attribute().end(), [&](const auto& one) {
      return !one.has_i() || (one.i() >= low && one.i() <= high);
    });
  }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const {
    const AttributeProto* found = attribute(name);
    return found == nullptr ? otherwise : found->i();
  }
  // Whether the list is absent or has `count` numbers in this range.
  bool list_within(std::string_view name, int count, std::int64_t low, std::int64_t high) const {
    const AttributeProto* found = attribute(name);
    if (found == nullptr) return true;
    return found->ints_size() == count &&
           std::all_of(found->ints().begin(), found->ints().end(),
                       [&](std::int64_t value) { return value >= low && value <= high; });
  }

 private:
  const onnx::TensorShapeProto& shape(std::size_t input) const {
    return inputs_[input]->type.tensor_type().shape();
  }

  const NodeProto& node_;
  const std::vector<const OnnxValue*>& inputs_;
};

// A product that stays below what tensors may be: libonnx multiplies without looking, and what
// wraps may be 0 or -1 where it divides next.
class BoundedProduct {
 public:
  // Whether it still is within the limit. Factors of 0 and those that are not known do not count.
  bool times(std::int64_t factor) {
    if (factor < 0 || (factor > 0 && value_ > limits::kTensorBytes / factor)) return false;
    if (factor > 0) value_ *= factor;
    return true;
  }

 private:
  std::int64_t value_ = 1;
};

bool shapes_are_sane(const GuardedNode& node) {
  for (std::size_t i = 0; i < node.num_inputs(); ++i) {
    if (!node.has_rank(i)) continue;
    if (node.rank(i) > static_cast<int>(limits::kRank)) return false;
    BoundedProduct elements;
    for (int axis = 0; axis < node.rank(i); ++axis) {
      if (!elements.times(node.dim(i, axis).value_or(0))) return false;
    }
  }
  return true;
}

// Sizes, axes, types and switches; those that are values of a tensor may be anything.
bool attributes_are_sane(const GuardedNode& node) {
  return node.type() == "Constant" || node.is_of_traditional_learning() ||
         node.integers_within(-kLargest, kLargest);
}

// Operators of which an input lists an output's dimensions, one dimension an element.
bool lists_are_short(const GuardedNode& node) {
  constexpr std::array<std::string_view, 13> kTypes{
      "AffineGrid", "CenterCropPad", "Col2Im",   "ConstantOfShape", "Expand",
      "Pad",        "Reshape",       "Resize",   "Slice",           "Squeeze",
      "Tile",       "Upsample",      "Unsqueeze"};
  if (std::find(kTypes.begin(), kTypes.end(), node.type()) == kTypes.end()) return true;
  for (std::size_t i = node.type() == "ConstantOfShape" ? 0 : 1; i < node.num_inputs(); ++i) {
    if (!node.has_rank_of(i, 1)) continue;
    const auto length = node.dim(i, 0);
    if (length && (*length < 0 || *length > 2 * static_cast<std::int64_t>(limits::kRank))) {
      return false;
    }
  }
  return true;
}

// Convolutions and poolings; `weights` is the input that holds the windows' numbers, if any.
bool windows_fit(const GuardedNode& node, std::optional<std::size_t> weights) {
  // Nothing follows from what is not known, or no tensor at all.
  if (!node.has_rank(0) || (weights && !node.has_rank(*weights))) return false;
  if (node.rank(0) < 2) return false;
  if (node.type() == "MaxUnpool" && (!node.has_rank(1) || node.rank(1) != node.rank(0))) {
    return false;
  }
  const int axes = node.rank(0) - 2;
  if (weights && node.rank(*weights) != node.rank(0)) return false;
  if (weights) {
    for (int axis = 0; axis < node.rank(*weights); ++axis) {
      if (node.dim(*weights, axis).value_or(1) > kLargest) return false;
    }
  }
  if (!node.list_within("strides", axes, 1, kLargest) ||
      !node.list_within("dilations", axes, 1, kLargest) ||
      !node.list_within("kernel_shape", axes, 1, kLargest) ||
      !node.list_within("output_padding", axes, 0, kLargest) ||
      !node.list_within("output_shape", axes, 0, kLargest) ||
      !node.list_within("pads", 2 * axes, -kLargest, kLargest)) {
    return false;
  }
  for (int axis = 0; axis < axes; ++axis) {
    if (node.dim(0, axis + 2).value_or(0) > kMostSteps) return false;
  }
  return true;
}

std::optional<std::size_t> weights_of(std::string_view type) {
  if (type == "QLinearConv") return 3;
  if (type.find("Conv") != std::string_view::npos) return 1;
  return std::nullopt;
}

bool is_windowed(std::string_view type) {
  constexpr std::array<std::string_view, 9> kTypes{"AveragePool",   "Conv",       "ConvInteger",
                                                   "ConvTranspose", "DeformConv", "LpPool",
                                                   "MaxPool",       "MaxUnpool",  "QLinearConv"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

bool gather_nd_fits(const GuardedNode& node) {
  if (!node.has_rank(0) || !node.has_rank(1)) return true;
  const std::int64_t batch = node.integer("batch_dims", 0);
  if (node.rank(0) < 1 || node.rank(1) < 1 || batch < 0 ||
      batch >= std::min(node.rank(0), node.rank(1))) {
    return false;
  }
  const auto last = node.dim(1, node.rank(1) - 1);
  return !last || (*last >= 1 && *last + batch <= node.rank(0));
}

bool axis_is_inside(const GuardedNode& node) {
  if (!node.has_rank(0)) return false;
  const std::int64_t axis = node.integer("axis", -1);
  return axis >= -node.rank(0) && axis < node.rank(0);
}

// Signal [batch, length, 1 or 2], a frame step, and a window or a frame length, which are known.
bool is_whole_stft(const GuardedNode& node) {
  const bool length = node.has_data(3, 1) && node.has_rank_of(3, 0);
  const bool window = node.has_rank_of(2, 1) && node.dim(2, 0);
  return node.has_rank_of(0, 3) && node.has_data(1, 1) && node.has_rank_of(1, 0) &&
         node.is_integral(1) && (length || window);
}

// The square of the size of a block divides the channels.
bool blocks_fit(const GuardedNode& node) {
  const std::int64_t size = node.integer("blocksize", 0);
  if (size < 1 || size >= kLargest) return false;
  BoundedProduct channels;
  const bool known = node.type() == "SpaceToDepth" && node.has_rank_of(0, 4);
  return !known || (channels.times(node.dim(0, 1).value_or(0)) && channels.times(size * size));
}

// The axes that are repeated.
bool repeats_fit(const GuardedNode& node) {
  const SmallTensor* repeats = node.data(1);
  if (repeats == nullptr || !node.has_rank(0)) return true;
  const int axes = std::min(node.rank(0), static_cast<int>(repeats->values.size()));
  for (int axis = 0; axis < axes; ++axis) {
    BoundedProduct length;
    if (!length.times(node.dim(0, axis).value_or(0)) ||
        !length.times(repeats->integer(static_cast<std::size_t>(axis)))) {
      return false;
    }
  }
  return true;
}

// One size of all parts divides the axis.
bool parts_fit(const GuardedNode& node) {
  const SmallTensor* sizes = node.data(1);
  if (sizes == nullptr) return true;
  const std::int64_t least = sizes->values.size() == 1 ? 1 : 0;
  for (std::size_t i = 0; i < sizes->values.size(); ++i) {
    if (sizes->integer(i) < least) return false;
  }
  return true;
}

// The size that is asked for as -1 is the input's product divided by that of the other sizes, of
// which 0 stands for the input's.
bool sizes_multiply(const GuardedNode& node) {
  const SmallTensor* sizes = node.data(1);
  if (sizes == nullptr) return true;
  BoundedProduct product;
  for (std::size_t i = 0; i < sizes->values.size(); ++i) {
    const std::int64_t size = sizes->integer(i);
    const auto axis = static_cast<int>(i);
    const bool copied = size == 0 && node.has_rank(0) && axis < node.rank(0);
    if (size < -1) return false;
    if (size >= 0 && !product.times(copied ? node.dim(0, axis).value_or(0) : size)) return false;
  }
  return true;
}

}  // namespace

bool safe_to_infer(const NodeProto& proto, const std::vector<const OnnxValue*>& inputs) {
  const GuardedNode node(proto, inputs);
  const std::string_view type = node.type();
  if (!shapes_are_sane(node) || !attributes_are_sane(node) || !lists_are_short(node)) return false;
  if (is_windowed(type)) return windows_fit(node, weights_of(type));
  if (type == "GatherND") return gather_nd_fits(node);
  if (type == "LayerNormalization") return axis_is_inside(node);
  if (type == "STFT") return is_whole_stft(node);
  if (type == "DepthToSpace" || type == "SpaceToDepth") return blocks_fit(node);
  if (type == "SplitToSequence") return parts_fit(node);
  if (type == "Reshape") return sizes_multiply(node);
  if (type == "Tile") return repeats_fit(node);
  // Looks at the type of an input without asking whether it has one.
  if (type == "EyeLike") return node.is_tensor(0);
  if (type == "Gemm") {
    return node.has_rank_of(0, 2) && node.has_rank_of(1, 2);
  }
  if (type == "RNN" || type == "GRU" || type == "LSTM") {
    return !node.has_rank(0) || node.rank(0) == 3;
  }
  return true;
}

}  // namespace emplace
