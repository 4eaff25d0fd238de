#include "tensor/coarsen.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/union_find.h"

namespace emplace {
namespace {

constexpr std::string_view kGradient = "/grad";

bool same_shape(const Graph& graph, TensorId a, TensorId b) {
  return graph.has_shape(a) && graph.has_shape(b) &&
         std::ranges::equal(graph.shape(a), graph.shape(b));
}

// "layer.0.step.7.Gemm" becomes "layer.0.step.*.Gemm".
std::string without_steps(std::string_view name) {
  constexpr std::string_view kStep = "step.";
  std::string result;
  std::size_t at = 0;
  while (at < name.size()) {
    const std::size_t found = name.find(kStep, at);
    if (found == std::string_view::npos) break;
    const std::size_t begin = found + kStep.size();
    std::size_t end = begin;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
    result.append(name.substr(at, begin - at));
    if (end > begin) result += '*';
    at = end;
  }
  return result.append(name.substr(at));
}

class Coarsener {
 public:
  Coarsener(const Graph& graph, const Descriptions& descriptions, bool updates)
      : graph_(graph),
        descriptions_(descriptions),
        updates_(updates),
        tensors_(graph.num_tensors()),
        ops_(graph.num_ops()),
        forward_of_(graph.num_ops()),
        differentiated_(graph.num_tensors()) {}

  // A gradient op is named after its forward op (graph/gradient_graph.h) and writes gradients of
  // that op's inputs; only the sum of several gradients, which is the one Add of the backward pass,
  // is of its outputs.
  void tie_gradients() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.phase(op) == Phase::kForward) continue;
      const std::string_view name = graph_.op_name(op);
      const std::size_t found = name.rfind(kGradient);
      if (found == std::string_view::npos) continue;
      const auto forward = graph_.find_op(name.substr(0, found));
      if (!forward) continue;
      const bool is_sum = graph_.type(op) == "Add";
      if (!is_sum) forward_of_[op] = forward;
      const auto candidates = is_sum ? graph_.outputs(*forward) : graph_.inputs(*forward);
      const std::string_view label = name.substr(found + kGradient.size());
      for (const TensorId gradient : graph_.outputs(op)) {
        if (const TensorId* of = find_differentiated(candidates, gradient, label)) {
          tie_gradient_to(*of, gradient);
        }
      }
    }
  }

  // Gradients of other graphs, as captured ones, are known by what they read: "<Type>Grad" reads
  // something of its forward op's, and a gradient of a product the other operand.
  void tie_captured_gradients() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.phase(op) != Phase::kBackward || graph_.outputs(op).empty() ||
          graph_.op_name(op).find(kGradient) != std::string_view::npos) {
        continue;
      }
      for (const TensorId read : graph_.inputs(op)) {
        if (graph_.phase(graph_.producer(read)) == Phase::kForward) tie_to_forward(op, read);
      }
    }
  }

  void tie_elementwise() {
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (descriptions_[op] == nullptr || !descriptions_[op]->is_elementwise()) continue;
      if (!updates_ && graph_.phase(op) == Phase::kUpdate) {
        tie_state(op);
        continue;
      }
      const auto outputs = graph_.outputs(op);
      const auto inputs = graph_.inputs(op);
      const TensorId first = outputs.empty() ? inputs[0] : outputs[0];
      for (const TensorId tensor : outputs) tie(first, tensor);
      for (const TensorId tensor : inputs) tie(first, tensor);
    }
  }

  // Ops of different steps with one name, and ops of one signature that use the same weights.
  void tie_steps() {
    std::map<std::pair<std::string, std::uint32_t>, OpId> by_name;
    std::map<std::tuple<TensorId, std::size_t, std::uint32_t>, OpId> by_weights;
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      if (graph_.is_source(op) || descriptions_[op] == nullptr) continue;
      const std::uint32_t signature = descriptions_.signature(op);
      const std::string name = without_steps(graph_.op_name(op));
      if (name != graph_.op_name(op)) {
        const auto [at, added] = by_name.try_emplace({name, signature}, op);
        if (!added) tie_ops(at->second, op);
      }
      const auto inputs = graph_.inputs(op);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (graph_.role(graph_.producer(inputs[i])) != OpRole::kParameter) continue;
        if (graph_.phase(op) == Phase::kUpdate || graph_.shape(inputs[i]).size() < 2) continue;
        const auto [at, added] = by_weights.try_emplace({inputs[i], i, signature}, op);
        if (!added) tie_ops(at->second, op);
      }
    }
  }

  Classes classes() {
    Classes result;
    result.of_tensor = number(tensors_, graph_.num_tensors(), result.num_tensors);
    result.of_op = number(ops_, graph_.num_ops(), result.num_ops);
    result.forward_of = std::move(forward_of_);
    result.differentiated = std::move(differentiated_);
    return result;
  }

 private:
  // The backward op with the forward op that the tensor belongs to, if there is one such.
  void tie_to_forward(OpId backward, TensorId shared) {
    const std::string_view type = graph_.type(backward);
    const bool product = type == "Gemm" || type == "MatMul" || type == "Einsum";
    std::vector<OpId> forward;
    const auto try_op = [&](OpId op) {
      if (graph_.phase(op) != Phase::kForward || graph_.is_source(op)) return;
      const std::string_view own = graph_.type(op);
      const bool is_gradient =
          type.starts_with(own) && type.substr(own.size()).find("Grad") != std::string_view::npos;
      if (product ? own == type && graph_.inputs(op).size() >= 2 : is_gradient) {
        forward.push_back(op);
      }
    };
    if (!product) try_op(graph_.producer(shared));
    for (const OpId reader : graph_.consumers(shared)) try_op(reader);
    if (forward.size() == 1) tie_gradient(backward, forward[0], shared, product);
  }

  // What the backward op makes is the gradient of an operand, and it reads that of the result. Of a
  // product the operand is not the one that is shared.
  void tie_gradient(OpId backward, OpId forward, TensorId shared, bool product) {
    const TensorId result = graph_.outputs(forward)[0];
    const auto inputs = graph_.inputs(backward);
    const auto gradient = std::find_if(inputs.begin(), inputs.end(), [&](TensorId tensor) {
      return tensor != shared && graph_.phase(graph_.producer(tensor)) == Phase::kBackward &&
             same_shape(graph_, tensor, result);
    });
    const auto operands = graph_.inputs(forward);
    for (std::size_t i = 0; i < operands.size() && i < 2; ++i) {
      const bool other = product ? operands[i] != shared : i == 0 || operands[i] != shared;
      if (!other || !same_shape(graph_, operands[i], graph_.outputs(backward)[0])) continue;
      if (gradient == inputs.end()) continue;
      tie(*gradient, result);
      forward_of_[backward] = forward;
      differentiated_[*gradient] = result;
      tie_gradient_to(operands[i], graph_.outputs(backward)[0]);
      return;
    }
  }

  void tie_gradient_to(TensorId of, TensorId gradient) {
    differentiated_[gradient] = of;
    if (!updates_ && graph_.role(graph_.producer(of)) == OpRole::kParameter) return;
    tie(of, gradient);
  }

  // All moments of one weight lie alike, as their update goes by them.
  void tie_state(OpId update) {
    std::optional<TensorId> first;
    for (const TensorId tensor : graph_.inputs(update)) {
      if (graph_.role(graph_.producer(tensor)) != OpRole::kBuffer) continue;
      if (first) tie(*first, tensor);
      if (!first) first = tensor;
    }
  }

  void tie(TensorId a, TensorId b) {
    if (same_shape(graph_, a, b)) tensors_.unite(a, b);
  }

  void tie_ops(OpId a, OpId b) {
    ops_.unite(a, b);
    const auto tie_all = [&](std::span<const TensorId> first, std::span<const TensorId> second) {
      for (std::size_t i = 0; i < first.size() && i < second.size(); ++i) tie(first[i], second[i]);
    };
    tie_all(graph_.inputs(a), graph_.inputs(b));
    tie_all(graph_.outputs(a), graph_.outputs(b));
  }

  // The label says which input it is, as "/0" or "/1_sum"; else the first of its shape is.
  const TensorId* find_differentiated(std::span<const TensorId> candidates, TensorId gradient,
                                      std::string_view label) const {
    std::size_t input = candidates.size();
    if (label.size() > 1) std::from_chars(label.data() + 1, label.data() + label.size(), input);
    if (input < candidates.size() && same_shape(graph_, candidates[input], gradient)) {
      return &candidates[input];
    }
    const auto found = std::find_if(candidates.begin(), candidates.end(), [&](TensorId tensor) {
      return same_shape(graph_, tensor, gradient);
    });
    return found == candidates.end() ? nullptr : &*found;
  }

  static std::vector<ClassId> number(UnionFind& sets, std::uint32_t size, ClassId& count) {
    std::vector<ClassId> result(size);
    for (std::uint32_t i = 0; i < size; ++i) {
      const std::uint32_t first = sets.find(i);
      result[i] = first == i ? count++ : result[first];
    }
    return result;
  }

  const Graph& graph_;
  const Descriptions& descriptions_;
  bool updates_;
  UnionFind tensors_;
  UnionFind ops_;
  std::vector<std::optional<OpId>> forward_of_;
  std::vector<std::optional<TensorId>> differentiated_;
};

}  // namespace

Classes coarsen(const Graph& graph, const Descriptions& descriptions,
                const CoarseningOptions& options) {
  Coarsener coarsener(graph, descriptions, options.updates);
  if (options.gradients) {
    coarsener.tie_gradients();
    coarsener.tie_captured_gradients();
  }
  if (options.elementwise) coarsener.tie_elementwise();
  if (options.steps) coarsener.tie_steps();
  return coarsener.classes();
}

}  // namespace emplace
