// Tensors with a dimension in which several parts of one kind lie side by side, and that is to be
// two, [parts, extent], in all of them (tensor/interleave.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace emplace {

struct Twofold {
  std::size_t dim = 0;  // that becomes two
  std::int64_t parts = 0;
  std::int64_t extent = 0;

  bool operator==(const Twofold&) const = default;
};

using TwofoldSet = std::map<TensorId, Twofold>;

// All that can be seen so, from weights to where the parts are told apart.
TwofoldSet twofold_tensors(const Graph& graph);

// The only axis and range of a Slice with steps of one.
struct OneRange {
  std::size_t axis = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
};
std::optional<OneRange> range_of_slice(const Graph& graph, OpId op);

// By input, then by output: a letter for each dimension.
using Letters = std::vector<std::string>;
// Of Y = X W, where X may be many matrices and W is one, or of its gradients.
std::optional<Letters> letters_of_product(const Graph& graph, OpId op);

// Of a Transpose: which dimension of its input each of its output is.
std::vector<std::int64_t> order_of_transpose(const Graph& graph, OpId op);
// Whether the op shows the same elements in another shape.
bool is_reshape(std::string_view type);

}  // namespace emplace
