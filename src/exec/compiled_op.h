// An op made ready to be executed many times: its kernel chosen, its attributes resolved.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/error.h"
#include "base/ids.h"

#include "graph/graph.h"

#include "exec/kernel.h"

namespace emplace::exec {

// What ops are compiled for.
struct OpTarget {
  torch::Device device = torch::kCPU;
  torch::ScalarType real = torch::kFloat;  // of floating tensors
  // Of those that the graph has in 16 bits or less; kBFloat16: of float16, kHalf.
  torch::ScalarType narrow = torch::kFloat;
  bool training = false;   // the graph has backward ops
  std::uint64_t seed = 0;  // of dropout
};

// Of a tensor of the graph; integers of all widths are int64, as libtorch's kernels want them.
torch::ScalarType scalar_type(DType dtype, const OpTarget& target);

// Tensors by number; asking for one that the op has not is the graph's fault.
template <class T>
class Places : public std::span<T> {
 public:
  using std::span<T>::span;
  T& operator[](std::size_t i) const {
    if (i >= this->size()) {
      fail_input("has {} inputs or outputs where {} or more are expected", this->size(), i + 1);
    }
    return std::span<T>::operator[](i);
  }
};

// One execution.
struct OpStep {
  Places<const Tensor> inputs;
  Places<Tensor> outputs;  // to be filled
  std::int64_t step = 0;   // dropout draws other numbers in each
  Tensors* keep =
      nullptr;  // what a gradient can use beside the graph's tensors; nullptr: not wanted
  const Tensors* kept =
      nullptr;       // of a gradient: what its forward op kept; nullptr: nothing is here
  Clock clock = {};  // counts in place of `step` if it is defined
};

struct CompiledOp {
  std::function<void(OpStep&)> run;
  bool native = true;  // no: a gradient that runs its forward op again, or one not made for speed
};

// Throws an Error that names the op when there is no kernel for it.
CompiledOp compile_op(const Graph& graph, OpId op, const OpTarget& target);

// The forward op whose by-products this gradient op can use; kNoOp: none.
OpId keeper_of(const Graph& graph, OpId op);

}  // namespace emplace::exec
