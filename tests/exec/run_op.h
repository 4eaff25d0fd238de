// One op, run on tensors.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

#include "graph/graph_builder.h"
#include "graph/tensor_type.h"

#include "interpreter/interpreter.h"

namespace emplace::exec {

using torch::Tensor;
using Tensors = std::vector<Tensor>;
using Integers = std::vector<std::int64_t>;

inline DType dtype_of(const Tensor& tensor) {
  if (tensor.scalar_type() == torch::kBool) return DType::kBool;
  return tensor.is_floating_point() ? DType::kFloat32 : DType::kInt64;
}

struct OneOp {
  std::string type;
  Tensors inputs = {};
  std::vector<TensorSpec> outputs = {};
  Attributes attributes = {};
  bool training = false;  // beside a backward op
};

inline Tensors run_op(const OneOp& model) {
  GraphBuilder builder(model.type);
  OpSpec op{.name = "op", .type = model.type, .attributes = model.attributes};
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const Tensor& input = model.inputs[i];
    const TensorSpec spec{.shape = {input.sizes().begin(), input.sizes().end()},
                          .dtype = dtype_of(input)};
    op.inputs.push_back(builder.add({.name = fmt::format("x{}", i), .type = "input"}, {spec})[0]);
  }
  const auto outputs = builder.add(op, model.outputs);
  if (model.training) {
    builder.add(
        {.name = "seed", .type = "OnesLike", .inputs = {outputs[0]}, .phase = Phase::kBackward},
        {model.outputs[0]});
  }
  const Graph graph = std::move(builder).build();
  const Tensors values = interpret(
      graph, [&](const Graph&, OpId source, std::size_t) { return model.inputs[source]; });
  Tensors results;
  for (const TensorId output : outputs) results.push_back(values[output]);
  return results;
}

inline TensorSpec real(Shape shape) {
  return {.shape = std::move(shape), .dtype = DType::kFloat32};
}
inline TensorSpec whole(Shape shape) {
  return {.shape = std::move(shape), .dtype = DType::kInt64};
}
inline TensorSpec truth(Shape shape) {
  return {.shape = std::move(shape), .dtype = DType::kBool};
}

// An op of one floating output.
inline Tensor run(const std::string& type, const Tensors& inputs, Shape shape,
                  Attributes attributes = {}) {
  return run_op({type, inputs, {real(std::move(shape))}, std::move(attributes)})[0];
}

inline Tensor numbers(const Integers& values) {
  return torch::tensor(values, torch::kLong);
}
inline Tensor reals(const std::vector<double>& values) {
  return torch::tensor(values, torch::kDouble);
}
inline Tensor random(const Shape& shape) {
  return torch::rand(shape, torch::kDouble) * 2 - 1;
}

inline bool same(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a, b.to(a.dtype()), 1e-9, 1e-10);
}

}  // namespace emplace::exec
