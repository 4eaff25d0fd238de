#include "graph/in_place.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "graph/elementwise.h"

namespace emplace {
namespace {

constexpr std::array<std::string_view, 3> kInPlaceNames{"none", "sums", "all"};

// Partial results of divided ops are combined as gradients are summed.
bool combines_parts(std::string_view type) {
  return type == "PartSum" || type == "PartMax" || type == "PartMin" || type == "PartProd";
}

bool may_overwrite(const Graph& graph, OpId op, InPlace mode) {
  if (graph.is_source(op) || graph.is_view(op) || graph.outputs(op).size() != 1) return false;
  const std::string_view type = graph.type(op);
  if (combines_parts(type)) return true;
  if (mode == InPlace::kAll) return is_elementwise_operator(type);
  return graph.phase(op) != Phase::kForward && (type == "Add" || type == "Sum" || type == "add");
}

// The one op that reads a tensor, itself or through views, or kNoOp where there is none or more
// than one. A view that nobody reads may outlast any reader, and counts as a second one.
class OnlyReaders {
 public:
  explicit OnlyReaders(const Graph& graph)
      : graph_(graph), root_(graph.num_tensors()), found_(graph.num_tensors()) {
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      for (const TensorId tensor : graph.outputs(op)) {
        root_[tensor] = aliases(op) ? root_[graph.inputs(op)[0]] : tensor;
      }
    }
    for (OpId op = graph.num_ops(); op-- > 0;) {
      for (const TensorId tensor : graph.outputs(op)) find(tensor);
    }
  }

  TensorId root(TensorId tensor) const { return root_[tensor]; }
  OpId of(TensorId tensor) const { return found_[tensor].several ? kNoOp : found_[tensor].op; }

 private:
  struct Reader {
    OpId op = kNoOp;
    bool several = false;

    void add(const Reader& other) {
      several = several || other.several || (op != kNoOp && other.op != kNoOp && op != other.op);
      if (op == kNoOp) op = other.op;
    }
  };

  bool aliases(OpId op) const { return graph_.is_view(op) && !graph_.inputs(op).empty(); }

  // Readers come later in the file, and are known.
  void find(TensorId tensor) {
    for (const OpId reader : graph_.consumers(tensor)) {
      Reader through{.op = reader};
      if (aliases(reader) && graph_.inputs(reader)[0] == tensor) {
        through = {};
        for (const TensorId seen : graph_.outputs(reader)) through.add(found_[seen]);
        through.several = through.several || through.op == kNoOp;
      }
      found_[tensor].add(through);
    }
  }

  const Graph& graph_;
  std::vector<TensorId> root_;  // what a view's output is part of, or the tensor itself
  std::vector<Reader> found_;   // by tensor
};

}  // namespace

std::string_view in_place_name(InPlace mode) {
  return kInPlaceNames[static_cast<std::size_t>(mode)];
}

std::optional<InPlace> parse_in_place(std::string_view name) {
  const auto found = std::find(kInPlaceNames.begin(), kInPlaceNames.end(), name);
  if (found == kInPlaceNames.end()) return std::nullopt;
  return static_cast<InPlace>(found - kInPlaceNames.begin());
}

std::vector<TensorId> find_overwritten(const Graph& graph, InPlace mode) {
  std::vector<TensorId> result(graph.num_ops(), kNotOverwritten);
  if (mode == InPlace::kNone) return result;
  const OnlyReaders readers(graph);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!may_overwrite(graph, op, mode)) continue;
    const Bytes bytes = graph.memory_bytes(graph.outputs(op)[0]);
    const auto inputs = graph.inputs(op);
    const auto dies = [&](TensorId tensor) {
      const TensorId root = readers.root(tensor);
      return readers.of(root) == op && !graph.is_source(graph.producer(root)) &&
             graph.memory_bytes(tensor) == bytes && graph.memory_bytes(root) == bytes;
    };
    const auto found = std::find_if(inputs.begin(), inputs.end(), dies);
    if (found != inputs.end()) result[op] = *found;
  }
  return result;
}

}  // namespace emplace
