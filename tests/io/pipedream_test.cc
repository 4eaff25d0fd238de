#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "graph/colocation.h"

#include "io/file.h"
#include "io/readers.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

Graph small() {
  const fs::path path = fs::path(EMPLACE_SOURCE_DIR) / "tests/data/pipedream/small.txt";
  return read_pipedream(read_file(path.string()), "small");
}

std::string pipedream_error(const std::string& text) {
  try {
    read_pipedream(text, "model");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

std::string layer(const std::string& id, const std::string& activation = "1.0") {
  return id + " -- ReLU(inplace) -- forward_compute_time=1.0, backward_compute_time=2.0, " +
         "activation_size=" + activation + ", parameter_size=0.0\n";
}

std::vector<std::string_view> names(const Graph& graph) {
  std::vector<std::string_view> result;
  for (OpId op = 0; op < graph.num_ops(); ++op) result.push_back(graph.op_name(op));
  return result;
}

// The ops that hand `op` its inputs.
std::vector<std::string_view> producers(const Graph& graph, std::string_view op) {
  std::vector<std::string_view> result;
  for (const TensorId tensor : graph.inputs(*graph.find_op(op))) {
    result.push_back(graph.op_name(graph.producer(tensor)));
  }
  return result;
}

TEST(PipeDream, layers_become_parameter_forward_and_backward_ops) {
  const Graph graph = small();
  EXPECT_THAT(names(graph),
              ElementsAre("node1", "node2/parameter", "node2", "node3/parameter", "node3", "node4",
                          "node4/backward", "node3/backward", "node2/backward"));
  EXPECT_EQ(graph.role(*graph.find_op("node1")), OpRole::kInput);
  EXPECT_EQ(graph.role(*graph.find_op("node2/parameter")), OpRole::kParameter);
  EXPECT_EQ(graph.type(*graph.find_op("node3")), "Linear");
  EXPECT_EQ(graph.phase(*graph.find_op("node3/backward")), Phase::kBackward);
}

TEST(PipeDream, activations_flow_forward_and_gradients_back) {
  const Graph graph = small();
  EXPECT_THAT(producers(graph, "node2"), ElementsAre("node1", "node2/parameter"));
  EXPECT_THAT(producers(graph, "node4"), ElementsAre("node3", "node2"));
  EXPECT_THAT(producers(graph, "node4/backward"), ElementsAre("node4"));
  EXPECT_THAT(producers(graph, "node3/backward"),
              ElementsAre("node4/backward", "node3", "node3/parameter"));
  EXPECT_THAT(producers(graph, "node2/backward"),
              ElementsAre("node4/backward", "node3/backward", "node2", "node2/parameter"));
  EXPECT_TRUE(graph.outputs(*graph.find_op("node2/backward")).empty());
}

TEST(PipeDream, sizes_are_those_of_the_file_and_lists_are_summed) {
  const Graph graph = small();
  const auto bytes = [&](std::string_view op, std::size_t output) {
    return graph.bytes(graph.outputs(*graph.find_op(op))[output]);
  };
  EXPECT_EQ(bytes("node1", 0), 512);
  EXPECT_EQ(bytes("node2", 0), 192);
  EXPECT_EQ(bytes("node2/parameter", 0), 2304);
  EXPECT_EQ(bytes("node4/backward", 0), 64);   // to node3, the size of its activation
  EXPECT_EQ(bytes("node4/backward", 1), 192);  // to node2
  EXPECT_EQ(graph.memory_bytes(graph.outputs(*graph.find_op("node2"))[0]), 192);
}

TEST(PipeDream, times_are_exact_and_for_any_device) {
  const Graph graph = small();
  const auto times = graph.measured_times(*graph.find_op("node2/backward"));
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(graph.strings().get(times[0].device), "*");
  EXPECT_EQ(times[0].microseconds, (Decimal{4001, 0}));
  const auto zero = graph.measured_times(*graph.find_op("node4/backward"));
  ASSERT_EQ(zero.size(), 1U);
  EXPECT_EQ(zero[0].microseconds.mantissa, 0);
  EXPECT_TRUE(graph.measured_times(*graph.find_op("node1")).empty());
}

TEST(PipeDream, the_ops_of_a_layer_share_a_device) {
  const Graph graph = small();
  const Colocation colocation = find_colocation(graph);
  EXPECT_EQ(colocation.num_groups(), 4U);
  EXPECT_EQ(colocation.ops[colocation.group_of[*graph.find_op("node2")]].size(), 3U);
  EXPECT_EQ(colocation.ops[colocation.group_of[*graph.find_op("node4")]].size(), 2U);
}

TEST(PipeDream, a_layer_called_input_that_has_a_source_is_a_layer) {
  const Graph graph =
      read_pipedream(layer("a") +
                         "b -- InputNorm() -- forward_compute_time=3, backward_compute_time=0, "
                         "activation_size=1, parameter_size=0\n\ta -- b\n",
                     "m");
  EXPECT_EQ(graph.role(*graph.find_op("b")), OpRole::kCompute);
  EXPECT_TRUE(graph.find_op("b/backward"));
}

TEST(PipeDream, types_that_mean_something_here_are_renamed) {
  const Graph graph = read_pipedream(
      "a -- parameter(3) -- forward_compute_time=3, backward_compute_time=0, activation_size=1, "
      "parameter_size=0\n",
      "m");
  EXPECT_EQ(graph.role(*graph.find_op("a")), OpRole::kCompute);
}

TEST(PipeDream, line_ends_of_windows_and_empty_lines_are_fine) {
  std::string text = layer("a") + "\n" + layer("b") + "\ta -- b\n\n";
  std::string windows;
  for (const char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(names(read_pipedream(windows, "m")), names(read_pipedream(text, "m")));
}

TEST(PipeDream, mistakes_name_the_line_and_the_node) {
  EXPECT_THAT(pipedream_error(""), HasSubstr("no nodes"));
  EXPECT_THAT(pipedream_error(layer("a") + "b -- ReLU\n"), HasSubstr("line 2: expected 'NODE"));
  EXPECT_THAT(pipedream_error(layer("a", "[1.0; x]")),
              HasSubstr("line 1: a: activation_size: 'x'"));
  EXPECT_THAT(pipedream_error(layer("a", "[1.0; 2.0")), HasSubstr("around a list"));
  EXPECT_THAT(pipedream_error(layer("a", "[")), HasSubstr("around a list"));
  EXPECT_THAT(pipedream_error(layer("a", "-5")), HasSubstr("activation_size: '-5'"));
  EXPECT_THAT(pipedream_error(layer("a", "nan")), HasSubstr("activation_size: 'nan'"));
  EXPECT_THAT(
      pipedream_error("a -- B -- forward_compute_time=1, activation_size=1, parameter_size=1\n"),
      HasSubstr("line 1: a: backward_compute_time: is missing"));
  EXPECT_THAT(pipedream_error(layer("a") + layer("a")), HasSubstr("line 2: a: is described twice"));
  EXPECT_THAT(pipedream_error(layer("a") + "\ta -- c\n"), HasSubstr("line 2: edge a -- c"));
  EXPECT_THAT(pipedream_error(layer("a") + "\ta\n"), HasSubstr("line 2: expected an edge"));
  EXPECT_THAT(pipedream_error(layer("a") + layer("b") + "\ta -- b\n\tb -- a\n"),
              HasSubstr("is part of a cycle"));
}

}  // namespace
}  // namespace emplace
