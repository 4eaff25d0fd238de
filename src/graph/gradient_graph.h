// The training graph while the backward pass is added to a copy of the forward graph, whose tensors
// keep their numbers in it. Knows the gradient of every tensor so far and, where activations are to
// be computed again, their copies (graph/gradient_recompute.h).
#pragma once

#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"

#include "graph/gradient_recompute.h"
#include "graph/graph.h"
#include "graph/graph_builder.h"
#include "graph/tensor_type.h"
#include "graph/training.h"

namespace emplace {

inline constexpr TensorId kNoTensor = std::numeric_limits<TensorId>::max();

struct GradientOp {
  std::string type;
  std::vector<TensorId> inputs;
  std::vector<TensorType> outputs;
  std::int64_t flops = 0;
  std::string_view label = {};  // part of the name; says which of the forward op's gradients
  bool view = false;
  Attributes attributes = {};
  Bytes temp_bytes = 0;
};

class GradientGraph {
 public:
  // An output that a forward op gets in addition, for its gradient alone.
  struct Reserve {
    OpId op;
    TensorType type;
  };

  // Reserves by op, ascending.
  GradientGraph(const Graph& forward, const TrainingOptions& options,
                const std::vector<Reserve>& reserves);

  const Graph& forward() const { return forward_; }
  const TensorType& type(TensorId tensor) const { return types_[tensor]; }

  // Of a forward tensor; kNoTensor: none so far.
  TensorId gradient(TensorId tensor) const { return gradients_[tensor]; }
  void give(TensorId tensor, TensorId gradient);
  // kNoTensor: none.
  TensorId reserve(OpId op) const { return reserves_.empty() ? kNoTensor : reserves_[op]; }

  // What gradient ops of `op` read in place of a forward tensor.
  TensorId kept(OpId op, TensorId tensor);

  // Adds an op of the backward pass that belongs to the forward op.
  std::vector<TensorId> add(OpId op, GradientOp spec);
  // A gradient of ones for a tensor of which nothing else says how it matters.
  void add_seed(TensorId tensor);
  void add_update(OpId parameter, Optimizer optimizer);

  Graph build() && { return std::move(builder_).build(); }

 private:
  void copy_forward(const TrainingOptions& options, const std::vector<Reserve>& reserves);
  // The name, with a mark where an op of either pass has it already.
  std::string free_name(std::string name) const;
  std::string free_colocation(std::string name) const;
  TensorId new_tensor(TensorType type);
  void add_op(OpSpec spec);
  Bytes moved_bytes(const OpSpec& spec) const;
  OpId producer_of(TensorId tensor) const;  // of a forward tensor or a reserve
  bool is_copied(OpId op, TensorId tensor) const;
  void recompute(OpId op, OpId wanted);
  void add_copy(OpId op, OpId original, TensorId first_new,
                const std::vector<std::string>& triggers);

  static constexpr std::uint32_t kForwardTensor = std::numeric_limits<TensorId>::max();

  const Graph& forward_;
  GraphBuilder builder_;
  std::deque<TensorType> types_;           // by tensor
  std::vector<std::string> added_names_;   // of the ops that were added, where copies wait for some
  std::vector<std::uint32_t> added_by_;    // by tensor: an index of added_names_
  std::vector<TensorId> gradients_;        // by forward tensor
  std::vector<std::uint32_t> sums_;        // by forward op: how many of its gradients were added
  std::vector<TensorId> reserves_;         // by forward op, or empty
  std::vector<OpId> reserve_owner_;        // reserves follow the forward tensors
  std::vector<std::string> colocation_;    // by forward op, or empty
  std::vector<std::uint32_t> segment_of_;  // by forward op, or empty
  std::vector<TensorId> copies_;           // by tensor of the forward graph or reserve, or empty
  std::vector<std::uint8_t> in_batch_;     // by forward op: about to be copied
};

}  // namespace emplace
