#include "tensor/coarsen.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "graph/training.h"

namespace emplace {
namespace {

const TensorSpec kRow{.shape = {4}, .dtype = DType::kFloat32};
const TensorSpec kRows{.shape = {2, 4}, .dtype = DType::kFloat32};

class Gradients {
 public:
  explicit Gradients(GraphBuilder&& builder)
      : Gradients(training_step(std::move(builder).build())) {}
  explicit Gradients(Graph step)
      : graph_(std::move(step)),
        classes_(coarsen(graph_, Descriptions(graph_),
                         {.gradients = true, .elementwise = false, .steps = false})) {}

  // Whether the two ops' first outputs are decided together.
  bool tied(const std::string& a, const std::string& b) const {
    return classes_.of_tensor[output(a)] == classes_.of_tensor[output(b)];
  }

 private:
  TensorId output(const std::string& name) const {
    const auto op = graph_.find_op(name);
    if (!op) throw std::logic_error("there is no op " + name);
    return graph_.outputs(*op)[0];
  }

  Graph graph_;
  Classes classes_;
};

// w [4] -> Expand to [2, 4], which `readers` ops read.
Gradients expanded(int readers) {
  GraphBuilder builder("expanded");
  const auto w = builder.add({.name = "w", .type = "parameter"}, {kRow});
  const auto shape =
      builder.add({.name = "shape", .type = "input"}, {{.shape = {2}, .dtype = DType::kInt64}});
  const auto y = builder.add({.name = "y", .type = "Expand", .inputs = {w[0], shape[0]}}, {kRows});
  for (int i = 0; i < readers; ++i) {
    builder.add({.name = "r" + std::to_string(i), .type = "Relu", .inputs = y}, {kRows});
  }
  return Gradients(std::move(builder));
}

TEST(Coarsen, ties_what_expand_summed_up_to_its_input) {
  EXPECT_TRUE(expanded(1).tied("y/grad/sum", "w"));
}

TEST(Coarsen, ties_the_sum_of_gradients_to_the_output) {
  const Gradients gradients = expanded(2);
  EXPECT_TRUE(gradients.tied("y/grad/sum", "y"));
  EXPECT_TRUE(gradients.tied("y/grad/sum+", "w"));
}

TEST(Coarsen, knows_operands_beyond_the_ninth) {
  GraphBuilder builder("many");
  std::vector<TensorId> operands;
  for (int i = 0; i < 12; ++i) {
    operands.push_back(
        builder.add({.name = "w" + std::to_string(i), .type = "parameter"}, {kRow})[0]);
  }
  builder.add({.name = "y", .type = "Max", .inputs = operands}, {kRow});
  const Gradients gradients(std::move(builder));
  EXPECT_TRUE(gradients.tied("y/grad/11", "w11"));
  EXPECT_TRUE(gradients.tied("y/grad/1", "w1"));
  EXPECT_FALSE(gradients.tied("y/grad/11", "w1"));
}

// Softmax of x times w and its gradient, under names that say nothing; x is read by another product
// of the same shapes.
TEST(Coarsen, knows_gradients_of_captured_graphs_by_what_they_read) {
  const TensorSpec square{.shape = {4, 4}, .dtype = DType::kFloat32};
  GraphBuilder builder("captured");
  const auto add = [&](const char* name, const char* type, std::vector<TensorId> inputs,
                       Phase phase = Phase::kBackward) {
    return builder.add({.name = name, .type = type, .inputs = std::move(inputs), .phase = phase},
                       {square})[0];
  };
  const TensorId x = add("x", "input", {}, Phase::kForward);
  const TensorId w = add("w", "parameter", {}, Phase::kForward);
  const TensorId v = add("v", "parameter", {}, Phase::kForward);
  const TensorId y = add("y", "Gemm", {x, w}, Phase::kForward);
  add("other", "Gemm", {x, v}, Phase::kForward);
  const TensorId p = add("p", "Softmax", {y}, Phase::kForward);
  const TensorId dp = add("dp", "OnesLike", {p});
  const TensorId dy = add("dy", "SoftmaxGrad", {dp, p});
  add("dx", "Gemm", {dy, w});
  add("dw", "Gemm", {x, dy});
  const Gradients gradients(std::move(builder).build());
  EXPECT_TRUE(gradients.tied("dp", "p"));
  EXPECT_TRUE(gradients.tied("dy", "y"));
  EXPECT_TRUE(gradients.tied("dx", "x"));
  EXPECT_FALSE(gradients.tied("dw", "v"));  // of which of the two is not known
  EXPECT_FALSE(gradients.tied("dx", "dy"));
}

// w and its update with two moments: decided together, or in three classes.
TEST(Coarsen, tells_weights_gradients_and_state_apart) {
  GraphBuilder builder("product");
  const TensorSpec square{.shape = {4, 4}, .dtype = DType::kFloat32};
  const auto x = builder.add({.name = "x", .type = "input"}, {square});
  const auto w = builder.add({.name = "w", .type = "parameter"}, {square});
  builder.add({.name = "y", .type = "MatMul", .inputs = {x[0], w[0]}}, {square});
  const Graph step = training_step(std::move(builder).build(), {.optimizer = Optimizer::kAdam});
  const OpId update = *step.find_op("w/update");
  const auto inputs = step.inputs(update);  // the weight, its gradient, two moments
  for (const bool updates : {true, false}) {
    const Classes classes = coarsen(step, Descriptions(step), {.updates = updates});
    const auto of = [&](std::size_t i) { return classes.of_tensor[inputs[i]]; };
    EXPECT_EQ(of(0) == of(1), updates);
    EXPECT_EQ(of(0) == of(2), updates);
    EXPECT_EQ(of(1) == of(2), updates);
    EXPECT_EQ(of(2), of(3));
  }
}

}  // namespace
}  // namespace emplace
