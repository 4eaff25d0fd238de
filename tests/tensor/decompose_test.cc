#include "tensor/decompose.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace emplace {
namespace {

// Losses over the same labels, each with its gradient: with classes' weights, with others, with
// labels that are ignored, and a plain mean.
Graph losses_over_the_same_labels() {
  GraphBuilder builder("losses");
  const auto source = [&](const char* name, std::vector<std::int64_t> shape, DType dtype) {
    return builder.add({.name = name, .type = "input"},
                       {{.shape = std::move(shape), .dtype = dtype}})[0];
  };
  const TensorId dy = source("dy", {}, DType::kFloat32);
  const TensorId scores = source("scores", {4, 3}, DType::kFloat32);
  const TensorId labels = source("labels", {4}, DType::kInt64);
  const TensorId first = source("first", {3}, DType::kFloat32);
  const TensorId second = source("second", {3}, DType::kFloat32);
  const auto loss = [&](const std::string& name, std::vector<TensorId> weights,
                        const Attributes& attributes) {
    OpSpec forward{.name = name, .type = "SoftmaxCrossEntropyLoss", .inputs = {scores, labels}};
    OpSpec backward{.name = name + "/grad",
                    .type = "SoftmaxCrossEntropyLossGrad",
                    .inputs = {dy, scores, labels}};
    backward.phase = Phase::kBackward;
    for (OpSpec* op : {&forward, &backward}) {
      op->inputs.insert(op->inputs.end(), weights.begin(), weights.end());
      op->attributes = attributes;
    }
    builder.add(forward, {{.shape = {}, .dtype = DType::kFloat32}});
    builder.add(backward, {{.shape = {4, 3}, .dtype = DType::kFloat32}});
  };
  loss("one", {first}, {});
  loss("two", {second}, {});
  loss("ignoring", {}, {{"ignore_index", std::int64_t{2}}});
  loss("plain", {}, {});
  return std::move(builder).build();
}

// What the op's first input is divided by.
std::string divisor(const Graph& graph, const std::string& op) {
  const OpId division = graph.producer(graph.inputs(*graph.find_op(op))[0]);
  if (graph.type(division) != "Div") return "";
  return std::string(graph.op_name(graph.producer(graph.inputs(division)[1])));
}

TEST(Decompose, a_gradient_is_divided_by_the_weights_of_its_own_loss) {
  const Graph graph = decompose(losses_over_the_same_labels());
  EXPECT_EQ(divisor(graph, "one/grad"), "one/weight");
  EXPECT_EQ(divisor(graph, "two/grad"), "two/weight");
  EXPECT_EQ(divisor(graph, "ignoring/grad"), "ignoring/weight");
  EXPECT_EQ(divisor(graph, "plain/grad"), "");
  EXPECT_EQ(graph.attributes(*graph.find_op("plain/grad")).text("reduction", "mean"), "mean");
  EXPECT_EQ(graph.attributes(*graph.find_op("one/grad")).text("reduction", "mean"), "sum");
}

}  // namespace
}  // namespace emplace
