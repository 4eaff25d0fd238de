#include "io/cut_dimension.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace emplace {
namespace {

using CutShape = std::span<const std::int64_t>;

template <std::size_t N>
bool is_one_of(std::string_view type, const std::array<std::string_view, N>& types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// They leave the elements in their order.
constexpr std::array<std::string_view, 5> kReshapes{"Reshape", "Squeeze", "Unsqueeze", "Flatten",
                                                    "Identity"};
// Each element of the result needs all of the dimension `axis`; of the second, those after it too.
constexpr std::array<std::string_view, 4> kAlongAxis{"Softmax", "LogSoftmax", "Hardmax",
                                                     "LpNormalization"};
constexpr std::array<std::string_view, 2> kFromAxisOn{"LayerNormalization", "RMSNormalization"};
// What they do is said by more than shapes.
constexpr std::array<std::string_view, 7> kUnknown{"CumSum", "Einsum",    "ReverseSequence", "Scan",
                                                   "Loop",   "ScatterND", "ScatterElements"};

int axis_of(const Graph& graph, OpId op, std::int64_t otherwise, int rank) {
  const std::int64_t axis = graph.attributes(op).integer("axis", otherwise);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::optional<CutDimension> cut_after_reshape(CutShape from, CutShape to, const CutDimension& cut,
                                              std::int64_t devices) {
  // Elements come in rows, each of which is cut into a part for each device.
  std::int64_t rows = cut.blocks;
  for (int i = 0; i < cut.dimension; ++i) rows *= from[static_cast<std::size_t>(i)];
  std::int64_t before = 1;
  for (std::size_t at = 0; at < to.size(); before *= to[at++]) {
    if (before * to[at] <= rows) continue;
    const std::int64_t blocks = rows / before;
    if (rows % before != 0 || to[at] % (blocks * devices) != 0) return std::nullopt;
    return CutDimension{static_cast<int>(at), blocks};
  }
  return std::nullopt;
}

std::optional<CutDimension> cut_after_transpose(std::span<const std::int64_t> order, int rank,
                                                const CutDimension& cut) {
  if (order.empty()) return CutDimension{rank - 1 - cut.dimension, cut.blocks};
  const auto found = std::find(order.begin(), order.end(), cut.dimension);
  if (found == order.end()) return std::nullopt;
  return CutDimension{static_cast<int>(found - order.begin()), cut.blocks};
}

// Inputs that lie side by side in the last dimensions, as where shapes are broadcast.
std::optional<CutDimension> cut_from_the_end(CutShape from, CutShape to, const CutDimension& cut) {
  if (to.size() < from.size()) return std::nullopt;
  const std::size_t at = static_cast<std::size_t>(cut.dimension) + to.size() - from.size();
  if (to[at] != from[static_cast<std::size_t>(cut.dimension)]) return std::nullopt;
  return CutDimension{static_cast<int>(at), cut.blocks};
}

// Of a factor of a product, which may be read transposed; nothing of the dimension that is added
// up.
std::optional<CutDimension> cut_after_product(const Attributes& attributes, CutShape from,
                                              CutShape to, bool left, const CutDimension& cut) {
  const int rank = static_cast<int>(from.size());
  if (rank < 2 || to.size() < from.size()) return std::nullopt;
  if (cut.dimension < rank - 2) return cut_from_the_end(from, to, cut);
  const bool transposed = attributes.integer(left ? "transA" : "transB", 0) != 0;
  const bool last = cut.dimension == rank - 1;
  if (last == (left != transposed)) return std::nullopt;
  return CutDimension{static_cast<int>(to.size()) - (left ? 2 : 1), cut.blocks};
}

}  // namespace

std::optional<CutDimension> cut_after(const Graph& graph, OpId op, std::size_t input,
                                      const CutDimension& cut, std::int64_t devices) {
  const TensorId read = graph.inputs(op)[input];
  const auto outputs = graph.outputs(op);
  if (outputs.empty() || !graph.has_shape(read) || !graph.has_shape(outputs[0])) {
    return std::nullopt;
  }
  const CutShape from = graph.shape(read);
  const CutShape to = graph.shape(outputs[0]);
  const int rank = static_cast<int>(from.size());
  const std::string_view type = graph.type(op);
  if (cut.dimension >= rank || is_one_of(type, kUnknown)) return std::nullopt;
  if (is_one_of(type, kReshapes)) return cut_after_reshape(from, to, cut, devices);
  if (type == "Transpose") {
    return cut_after_transpose(graph.attributes(op).integers("perm"), rank, cut);
  }
  if (type == "Gather") {
    const int axis = axis_of(graph, op, 0, rank);
    if (input != 0 || cut.dimension == axis) return std::nullopt;
    const int added = cut.dimension > axis ? static_cast<int>(to.size()) - rank : 0;
    return CutDimension{cut.dimension + added, cut.blocks};
  }
  if (input < 2 && (type == "MatMul" || type == "Gemm")) {
    return cut_after_product(graph.attributes(op), from, to, input == 0, cut);
  }
  if (is_one_of(type, kAlongAxis) && cut.dimension == axis_of(graph, op, -1, rank)) {
    return std::nullopt;
  }
  if (is_one_of(type, kFromAxisOn) && cut.dimension >= axis_of(graph, op, -1, rank)) {
    return std::nullopt;
  }
  return cut_from_the_end(from, to, cut);
}

}  // namespace emplace
