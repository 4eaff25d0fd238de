#include "exec/overwrite.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace emplace::exec {
namespace {

// Writes what comes of both into the first.
using Absorb = void (*)(Tensor& into, const Tensor& other);

// From left to right, as the kernels do; two operands may change places.
Overwrite absorbing(Absorb absorb, Tensor (*together)(const Tensor&, const Tensor&)) {
  return [absorb, together](Tensors& inputs, std::size_t over) {
    if (over > 0) {
      Tensor before = inputs[0];
      for (std::size_t i = 1; i < over; ++i) before = together(before, inputs[i]);
      absorb(inputs[over], before);
    }
    for (std::size_t i = over + 1; i < inputs.size(); ++i) absorb(inputs[over], inputs[i]);
  };
}

using ByType = std::map<std::string_view, Overwrite>;

const ByType& sums() {
  static const ByType kSums = [] {
    ByType table;
    const Overwrite add = absorbing([](Tensor& into, const Tensor& other) { into.add_(other); },
                                    [](const Tensor& a, const Tensor& b) { return a + b; });
    for (const char* type : {"Add", "Sum", "PartSum"}) table[type] = add;
    table["PartMax"] =
        absorbing([](Tensor& into, const Tensor& other) { at::maximum_out(into, into, other); },
                  [](const Tensor& a, const Tensor& b) { return at::maximum(a, b); });
    table["PartMin"] =
        absorbing([](Tensor& into, const Tensor& other) { at::minimum_out(into, into, other); },
                  [](const Tensor& a, const Tensor& b) { return at::minimum(a, b); });
    table["PartProd"] = absorbing([](Tensor& into, const Tensor& other) { into.mul_(other); },
                                  [](const Tensor& a, const Tensor& b) { return a * b; });
    return table;
  }();
  return kSums;
}

template <class Function>
Overwrite unary(Function function) {
  return [function](Tensors& inputs, std::size_t over) { function(inputs[over]); };
}

// dy and y.
template <class Function>
Overwrite slope(Function function) {
  return [function](Tensors& inputs, std::size_t over) {
    function(inputs[over], inputs[0], inputs[1]);
  };
}

const ByType& elementwise() {
  static const ByType kElementwise{
      {"Abs", unary([](Tensor& x) { x.abs_(); })},
      {"Exp", unary([](Tensor& x) { x.exp_(); })},
      {"Neg", unary([](Tensor& x) { x.neg_(); })},
      {"Relu", unary([](Tensor& x) { x.relu_(); })},
      {"Sigmoid", unary([](Tensor& x) { x.sigmoid_(); })},
      {"Sqrt", unary([](Tensor& x) { x.sqrt_(); })},
      {"Tanh", unary([](Tensor& x) { x.tanh_(); })},
      {"Mul", absorbing([](Tensor& into, const Tensor& other) { into.mul_(other); },
                        [](const Tensor& a, const Tensor& b) { return a * b; })},
      {"Sub",
       [](Tensors& inputs, std::size_t over) {
         if (over == 0) {
           inputs[0].sub_(inputs[1]);
         } else {
           inputs[1].neg_().add_(inputs[0]);
         }
       }},
      {"ReluGrad", slope([](Tensor& into, const Tensor& dy, const Tensor& y) {
         at::threshold_backward_out(into, dy, y, 0);
       })},
      {"SigmoidGrad", slope([](Tensor& into, const Tensor& dy, const Tensor& y) {
         at::sigmoid_backward_out(into, dy, y);
       })},
      {"TanhGrad", slope([](Tensor& into, const Tensor& dy, const Tensor& y) {
         at::tanh_backward_out(into, dy, y);
       })},
  };
  return kElementwise;
}

// So that none is broadcast.
bool all_like_the_result(const Graph& graph, OpId op) {
  const TensorId result = graph.outputs(op)[0];
  const auto inputs = graph.inputs(op);
  return std::all_of(inputs.begin(), inputs.end(), [&](TensorId tensor) {
    return graph.dtype(tensor) == graph.dtype(result) &&
           std::ranges::equal(graph.shape(tensor), graph.shape(result));
  });
}

// Integers of fewer bits are computed in 64, and what comes out is wrapped to their width.
bool is_wrapped(DType dtype) {
  return dtype >= DType::kInt4 && dtype <= DType::kUInt32 && dtype != DType::kInt64;
}

}  // namespace

Overwrite overwrite_kernel(const Graph& graph, OpId op, InPlace mode) {
  if (mode == InPlace::kNone || graph.is_view(op) || graph.outputs(op).size() != 1) return {};
  const bool sum = sums().contains(graph.type(op));
  if ((!sum && mode != InPlace::kAll) || !all_like_the_result(graph, op)) return {};
  if (is_wrapped(graph.dtype(graph.outputs(op)[0]))) return {};
  const ByType& table = sum ? sums() : elementwise();
  const auto found = table.find(graph.type(op));
  return found == table.end() ? Overwrite{} : found->second;
}

}  // namespace emplace::exec
