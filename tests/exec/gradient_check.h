// Whether a training step's gradients are those that libtorch finds by differentiating its forward
// pass.
#pragma once

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "graph/graph.h"

#include "exec/sources.h"
#include "interpreter/interpreter.h"

namespace emplace::exec {

// Interprets the whole step on parameters that require gradients, and differentiates the sum of
// what the step is seeded at.
inline void expect_gradients(const Graph& step, const SeededNumbers& numbers = {}) {
  const SourceValue given = seeded_sources(numbers);
  std::map<TensorId, torch::Tensor> leaves;
  const auto values = interpret(step, [&](const Graph& graph, OpId op, std::size_t output) {
    torch::Tensor value = given(graph, op, output);
    if (graph.role(op) != OpRole::kParameter) return value;
    return leaves[graph.outputs(op)[output]] = value.requires_grad_();
  });
  torch::Tensor total = torch::zeros({}, torch::kDouble);
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (step.type(op) == "OnesLike") total = total + values[step.inputs(op)[0]].sum();
  }
  ASSERT_TRUE(total.isfinite().item<bool>());
  total.backward();
  int compared = 0;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (step.phase(op) != Phase::kUpdate || step.is_source(op)) continue;
    ++compared;
    const torch::Tensor& found = values[step.inputs(op)[1]];
    torch::Tensor expected = leaves.at(step.inputs(op)[0]).grad();
    if (!expected.defined()) expected = torch::zeros_like(found);
    EXPECT_TRUE(at::allclose(found, expected, 1e-8, 1e-9))
        << step.op_name(op) << " differs by up to " << (found - expected).abs().max().item<double>()
        << " of " << expected.abs().max().item<double>();
  }
  EXPECT_GT(compared, 0);
}

}  // namespace emplace::exec
