#include "graph/modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/timed_graph.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;

std::string module_of(const Graph& graph, const std::string& op) {
  const Modules modules = infer_modules(graph);
  return modules.names[modules.of_op[*graph.find_op(op)]];
}

// x -> fc1 -> relu -> fc2 -> loss, its backward pass and updates, as PyTorch captures it.
std::shared_ptr<const Graph> two_layers() {
  TimedGraph graph;
  const TensorId w1 = graph.parameter("net.fc1.weight");
  const TensorId w2 = graph.parameter("net.fc2.weight");
  const TensorId x = graph.source("x", "input");
  const TensorId zeros = graph.op("zeros", 1, {});
  const TensorId t1 = graph.view("t1", w1);
  const TensorId mm1 = graph.op("mm1", 1, {x, t1});
  const TensorId added = graph.op("add_zeros", 1, {zeros, mm1});
  const TensorId relu = graph.op("relu", 1, {added});
  const TensorId t2 = graph.view("t2", w2);
  const TensorId mm2 = graph.op("mm2", 1, {relu, t2});
  const TensorId loss = graph.op("loss", 1, {mm2});
  const TensorId g_mm2 = graph.backward("g_loss", 1, {loss});
  const TensorId relu_t = graph.view("relu_t", relu, Phase::kBackward);
  const TensorId g_w2 = graph.backward("g_w2", 1, {relu_t, g_mm2});
  const TensorId g_w2_t = graph.view("g_w2_t", g_w2, Phase::kBackward);
  const TensorId g_relu = graph.backward("g_relu_out", 1, {g_mm2, t2});
  const TensorId g_mm1 = graph.backward("relu_backward", 1, {g_relu, relu});
  const TensorId g_w1 = graph.backward("g_w1", 1, {x, g_mm1});
  graph.update("update_w2", 1, {w2, g_w2_t});
  graph.update("update_w1", 1, {w1, g_w1});
  return graph.build();
}

TEST(Modules, parameter_is_of_its_name_less_the_last_part) {
  const auto graph = two_layers();
  EXPECT_EQ(module_of(*graph, "net.fc1.weight"), "net.fc1");
}

TEST(Modules, op_takes_the_module_of_the_parameter_it_reads_through_a_view) {
  const auto graph = two_layers();
  EXPECT_EQ(module_of(*graph, "mm1"), "net.fc1");
  EXPECT_EQ(module_of(*graph, "mm2"), "net.fc2");
}

TEST(Modules, forward_op_without_parameters_takes_its_latest_producers_module) {
  const auto graph = two_layers();
  EXPECT_EQ(module_of(*graph, "relu"), "net.fc1");
  EXPECT_EQ(module_of(*graph, "loss"), "net.fc2");
}

TEST(Modules, op_that_reads_nothing_takes_its_first_readers_module) {
  const auto graph = two_layers();
  EXPECT_EQ(module_of(*graph, "zeros"), "net.fc1");
  EXPECT_EQ(module_of(*graph, "x"), "net.fc1");
}

TEST(Modules, weight_gradient_belongs_with_its_weight_and_not_with_the_activation_it_reads) {
  const auto graph = two_layers();
  EXPECT_EQ(module_of(*graph, "g_w2"), "net.fc2");
  EXPECT_EQ(module_of(*graph, "g_w1"), "net.fc1");
}

TEST(Modules, backward_op_takes_the_module_of_the_forward_tensor_it_reads) {
  const auto graph = two_layers();
  EXPECT_EQ(module_of(*graph, "g_loss"), "net.fc2");
  EXPECT_EQ(module_of(*graph, "g_relu_out"), "net.fc2");
  EXPECT_EQ(module_of(*graph, "relu_backward"), "net.fc1");
}

TEST(Modules, update_is_of_its_parameter) {
  const auto graph = two_layers();
  EXPECT_EQ(module_of(*graph, "update_w1"), "net.fc1");
  EXPECT_EQ(module_of(*graph, "update_w2"), "net.fc2");
}

TEST(Modules, update_named_after_its_parameter_and_its_state_are_of_the_parameter_s_module) {
  TimedGraph graph;
  const TensorId w = graph.parameter("fc.weight");
  const TensorId out = graph.op("/fc/MatMul", 1, {w});
  const TensorId gradient = graph.backward("/fc/MatMul/grad", 1, {out});
  const TensorId state =
      graph.add({.name = "fc.weight/m", .type = "buffer", .phase = Phase::kUpdate}, 0);
  graph.update("fc.weight/update", 1, {w, gradient, state});
  const auto built = graph.build();
  EXPECT_EQ(module_of(*built, "fc.weight/update"), "fc");
  EXPECT_EQ(module_of(*built, "fc.weight/m"), "fc");
  EXPECT_TRUE(infer_modules(*built).named);
}

TEST(Modules, are_listed_in_forward_order_and_not_in_the_order_of_parameters) {
  TimedGraph graph;
  const TensorId late = graph.parameter("late.weight");
  const TensorId early = graph.parameter("early.weight");
  const TensorId x = graph.source("x", "input");
  const TensorId a = graph.op("a", 1, {x, early});
  graph.op("b", 1, {a, late});
  EXPECT_THAT(infer_modules(*graph.build()).names, ElementsAre("early", "late"));
}

TEST(Modules, given_module_wins_over_parameters) {
  TimedGraph graph;
  const TensorId w = graph.parameter("w.weight");
  graph.add({.name = "a", .type = "compute", .inputs = {w}, .module = "stem"}, 1);
  const auto built = graph.build();
  EXPECT_EQ(module_of(*built, "a"), "stem");
  EXPECT_EQ(module_of(*built, "w.weight"), "w");
}

TEST(Modules, path_in_an_exporters_op_name_is_its_module) {
  TimedGraph graph;
  const TensorId w = graph.parameter("net.layer2.1.conv.weight");
  const TensorId hidden = graph.parameter("onnx::Conv_12");
  const TensorId a = graph.op("/net/layer2/layer2.1/conv/Conv", 1, {w});
  const TensorId b = graph.op("/net/layer2/layer2.1/Add", 1, {a, w});
  graph.op("/net/head/Conv", 1, {b, hidden});
  const auto built = graph.build();
  EXPECT_EQ(module_of(*built, "/net/layer2/layer2.1/conv/Conv"), "net.layer2.1.conv");
  EXPECT_EQ(module_of(*built, "/net/layer2/layer2.1/Add"), "net.layer2.1");
  EXPECT_EQ(module_of(*built, "onnx::Conv_12"), "net.head");
}

TEST(Modules, numbers_of_repeated_calls_are_dropped_only_where_parameters_say_so) {
  TimedGraph graph;
  const TensorId w = graph.parameter("cells.3.weight_ih");
  const TensorId a = graph.op("/cells.3_19/Gemm", 1, {w});
  graph.op("/dense_1/MatMul", 1, {a});
  graph.add({.name = "given", .type = "compute", .module = "cells.3_20"}, 1);
  const auto built = graph.build();
  EXPECT_EQ(module_of(*built, "/cells.3_19/Gemm"), "cells.3");
  EXPECT_EQ(module_of(*built, "given"), "cells.3");
  EXPECT_EQ(module_of(*built, "/dense_1/MatMul"), "dense_1");
}

TEST(Modules, numbered_entry_of_a_parameter_list_is_a_module_of_its_own) {
  TimedGraph graph;
  const TensorId first = graph.parameter("bias.0");
  const TensorId second = graph.parameter("bias.1");
  const TensorId a = graph.op("a", 1, {first});
  graph.op("b", 1, {a, second});
  EXPECT_THAT(infer_modules(*graph.build()).names, ElementsAre("bias.0", "bias.1"));
}

TEST(Modules, without_any_names_every_forward_op_is_a_module) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 1, {});
  const TensorId b = graph.op("b", 1, {a});
  graph.backward("b_grad", 1, {b});
  const Modules modules = infer_modules(*graph.build());
  EXPECT_THAT(modules.names, ElementsAre("a", "b"));
  EXPECT_THAT(modules.of_op, ElementsAre(0, 1, 1));
}

// Unrolls `steps` steps of a stack of cells over an embedding, and projects each step's last state.
// With `state`, a cell reads its own output of the step before.
std::shared_ptr<const Graph> unrolled(const std::vector<std::string>& cells, int steps,
                                      bool state) {
  TimedGraph graph;
  const TensorId embedding = graph.parameter("emb.weight");
  std::vector<TensorId> weights;
  for (const std::string& cell : cells) weights.push_back(graph.parameter(cell + ".weight"));
  const TensorId projection = graph.parameter("proj.weight");
  const TensorId ids = graph.source("ids", "input");
  std::vector<TensorId> states(cells.size(), ids);
  for (int step = 0; step < steps; ++step) {
    const std::string suffix = std::to_string(step);
    TensorId x = graph.op("embed" + suffix, 1, {ids, embedding});
    for (std::size_t i = 0; i < cells.size(); ++i) {
      std::vector<TensorId> inputs{x, weights[i]};
      if (state && step > 0) inputs.push_back(states[i]);
      x = states[i] = graph.op(cells[i] + "_at" + suffix, 1, inputs);
    }
    graph.op("project" + suffix, 1, {x, projection});
  }
  return graph.build();
}

std::vector<std::string> modules_of_layer(const Graph& graph, std::uint32_t layer) {
  const Modules modules = infer_modules(graph);
  const RecurrentLayers layers = find_recurrent_layers(graph, modules);
  std::vector<std::string> names;
  for (std::uint32_t m = 0; m < modules.size() && layers.count > 0; ++m) {
    if (layers.of_module[m] == layer) names.push_back(modules.names[m]);
  }
  return names;
}

TEST(RecurrentLayers, embedding_goes_with_the_first_and_projection_with_the_last_layer) {
  const auto graph = unrolled({"cells.0", "cells.1", "cells.2"}, 6, true);
  EXPECT_EQ(find_recurrent_layers(*graph, infer_modules(*graph)).count, 3U);
  EXPECT_THAT(modules_of_layer(*graph, 0), ElementsAre("emb", "cells.0"));
  EXPECT_THAT(modules_of_layer(*graph, 1), ElementsAre("cells.1"));
  EXPECT_THAT(modules_of_layer(*graph, 2), ElementsAre("cells.2", "proj"));
}

TEST(RecurrentLayers, encoder_and_decoder_layers_of_one_index_share_a_layer) {
  const auto graph = unrolled({"enc_fw", "enc_bw", "enc.0", "dec.0", "dec.1"}, 6, true);
  EXPECT_THAT(modules_of_layer(*graph, 0), ElementsAre("emb", "enc_fw", "enc_bw", "dec.0"));
  EXPECT_THAT(modules_of_layer(*graph, 1), ElementsAre("enc.0", "dec.1", "proj"));
}

TEST(RecurrentLayers, repeated_modules_without_a_state_are_not_recurrent) {
  const auto graph = unrolled({"cells.0", "cells.1"}, 6, false);
  EXPECT_EQ(find_recurrent_layers(*graph, infer_modules(*graph)).count, 0U);
}

TEST(RecurrentLayers, few_steps_are_not_recurrent) {
  const auto graph = unrolled({"cells.0", "cells.1"}, 4, true);
  EXPECT_EQ(find_recurrent_layers(*graph, infer_modules(*graph)).count, 0U);
}

}  // namespace
}  // namespace emplace
