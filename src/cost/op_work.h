// What an op asks of a device, read off its type, shapes and counts: the input of the cost curves.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "base/ids.h"

#include "graph/graph.h"

#include "cost/op_class.h"

namespace emplace {

struct OpWork {
  OpClass op_class = OpClass::kElementwise;
  DType dtype = DType::kFloat32;  // of the operands
  double pieces = 1;  // operators in one: both gradients of a convolution, steps of a sequence
  double flops = 0;
  double bytes = 0;        // read and written
  double channels = 0;     // of a batch norm
  double depth = 0;        // of a convolution: products that are summed for one element
  double tiles = 0;        // of a product's result, or a convolution's, 128 by 128 elements each
  bool unaligned = false;  // a matrix product with rows that are no multiple of 16 bytes

  friend bool operator==(const OpWork&, const OpWork&) = default;
};

// Reads the work of ops of one graph, which must outlive it. Remembers the classes of types.
class WorkReader {
 public:
  explicit WorkReader(const Graph& graph) : graph_(graph) {}

  OpWork work(OpId op);

 private:
  using Shape = std::span<const std::int64_t>;
  struct Images {  // a convolution's result, its input and its weights
    Shape y;
    Shape x;
    Shape w;
    bool plain() const { return y[1] == w[0] && x[1] >= w[1] && x[1] % w[1] == 0; }
    bool transposed() const { return x[1] == w[0] && y[1] >= w[1] && y[1] % w[1] == 0; }
  };

  OperatorKind kind_of(OpId op);
  std::optional<Images> find_images(OpId op, bool gradient) const;
  void read_product(OpId op, OpWork& work) const;
  void read_recurrent(OpId op, OpWork& work) const;
  void read_convolution(OpId op, bool gradient, OpWork& work) const;
  void read_elementwise(OpId op, OpWork& work) const;
  double moved_bytes(OpId op, OpClass op_class) const;

  const Graph& graph_;
  std::unordered_map<std::string_view, OperatorKind> kinds_;  // by type, outside of updates
};

}  // namespace emplace
