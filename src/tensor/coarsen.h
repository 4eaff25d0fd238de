// What is decided together (Tofu, section 5.1): a tensor with its gradient, tensors along runs of
// elementwise operators, the steps of a recurrent cell that was unrolled. The graph of what is left
// to decide is nearly a chain. Where storage is chosen apart from use, a weight, its gradient and
// the optimizer's state are not tied to each other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"

#include "tensor/describe.h"

namespace emplace {

using ClassId = std::uint32_t;

struct Classes {
  std::vector<ClassId> of_tensor;  // tensors of one class have one shape
  std::vector<ClassId> of_op;      // ops of one class have one description
  ClassId num_tensors = 0;
  ClassId num_ops = 0;
  // By op of the backward pass: the op whose gradient it computes; by tensor: what it is the
  // gradient of. As far as these are known, and where gradients are looked for at all.
  std::vector<std::optional<OpId>> forward_of;
  std::vector<std::optional<TensorId>> differentiated;
};

struct CoarseningOptions {
  bool gradients = true;
  bool elementwise = true;
  bool steps = true;
  bool updates = true;  // a weight, its gradient and its state
};

Classes coarsen(const Graph& graph, const Descriptions& descriptions,
                const CoarseningOptions& options = {});

}  // namespace emplace
