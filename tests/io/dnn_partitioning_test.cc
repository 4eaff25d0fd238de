#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "io/file.h"
#include "io/readers.h"

namespace emplace {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

Model diamond_model() {
  const fs::path path = fs::path(EMPLACE_SOURCE_DIR) / "tests/data/dnn_partitioning/diamond.json";
  return read_dnn_partitioning(read_file(path.string()), "diamond");
}

std::string dnn_partitioning_error(const std::string& text) {
  try {
    read_dnn_partitioning(text, "model");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

std::string node(int id, const std::string& more = "") {
  return "{\"id\": " + std::to_string(id) + ", \"cpuLatency\": 1, \"fpgaLatency\": 1, \"size\": 1" +
         more + "}";
}
std::string edge(int from, int to, const std::string& cost = "1") {
  return "{\"sourceId\": " + std::to_string(from) + ", \"destId\": " + std::to_string(to) +
         ", \"cost\": " + cost + "}";
}
std::string workload(
    const std::string& nodes, const std::string& edges = "",
    const std::string& head = "\"maxSizePerFPGA\": 9, \"maxFPGAs\": 1, \"maxCPUs\": 0") {
  return "{" + head + ", \"nodes\": [" + nodes + "], \"edges\": [" + edges + "]}";
}

TEST(DnnPartitioning, nodes_become_ops_in_topological_order_stable_by_the_file) {
  const Model model = diamond_model();
  const Graph& graph = *model.graph;
  ASSERT_EQ(graph.num_ops(), 4U);
  EXPECT_EQ(graph.name(), "diamond");
  EXPECT_EQ(graph.op_name(0), "1:start");
  EXPECT_EQ(graph.op_name(1), "2:left");
  EXPECT_EQ(graph.op_name(2), "3:right");
  EXPECT_EQ(graph.op_name(3), "7:join");
  EXPECT_EQ(graph.persistent_bytes(0), 50);
  EXPECT_EQ(graph.persistent_bytes(3), 10);
  EXPECT_EQ(graph.phase(3), Phase::kBackward);
  EXPECT_EQ(graph.phase(1), Phase::kForward);
  EXPECT_EQ(graph.colocate(1), graph.colocate(3));
  EXPECT_FALSE(graph.colocate(1).empty());
  EXPECT_TRUE(graph.colocate(0).empty());
  EXPECT_TRUE(graph.colocate(2).empty());
}

TEST(DnnPartitioning, times_are_the_exact_decimals_of_the_file) {
  const Model model = diamond_model();
  const Graph& graph = *model.graph;
  const auto time = [&](OpId op, std::string_view kind) -> std::optional<Decimal> {
    for (const MeasuredTime& measured : graph.measured_times(op)) {
      if (graph.strings().get(measured.device) == kind) return measured.microseconds;
    }
    return std::nullopt;
  };
  EXPECT_EQ(time(3, "acc"), (Decimal{696, 0}));
  EXPECT_EQ(time(3, "cpu"), (Decimal{6959999999999999, -12}));
  EXPECT_EQ(time(1, "acc"), (Decimal{1, 2}));
  EXPECT_EQ(time(0, "cpu"), (Decimal{0, 0}));
  EXPECT_EQ(time(2, "acc"), std::nullopt);
  ASSERT_EQ(graph.allowed_devices(2).size(), 1U);
  EXPECT_EQ(graph.strings().get(graph.allowed_devices(2)[0]), "cpu");
  EXPECT_TRUE(graph.allowed_devices(1).empty());
}

TEST(DnnPartitioning, a_tensor_has_a_byte_per_nanosecond_of_cost_and_takes_no_memory) {
  const Model model = diamond_model();
  const Graph& graph = *model.graph;
  ASSERT_EQ(graph.num_tensors(), 3U);  // nobody reads the last node
  EXPECT_TRUE(graph.outputs(3).empty());
  const TensorId start = graph.outputs(0)[0];
  EXPECT_EQ(graph.bytes(start), 123'456);
  EXPECT_EQ(graph.memory_bytes(start), 0);
  EXPECT_EQ(graph.consumers(start).size(), 2U);
  EXPECT_EQ(graph.inputs(1).size(), 1U);                   // the repeated edge counts once
  EXPECT_EQ(graph.bytes(graph.outputs(1)[0]), 0);          // 0.058 ns
  EXPECT_EQ(graph.bytes(graph.outputs(2)[0]), 2'000'001);  // 2000000.5, half up
  EXPECT_EQ(graph.inputs(3).size(), 2U);
}

TEST(DnnPartitioning, the_file_brings_its_cluster) {
  const Model model = diamond_model();
  ASSERT_NE(model.cluster, nullptr);
  const Cluster& cluster = *model.cluster;
  ASSERT_EQ(cluster.num_devices(), 3U);
  EXPECT_EQ(cluster.device(0).name, "acc0");
  EXPECT_EQ(cluster.device(1).name, "acc1");
  EXPECT_EQ(cluster.device(1).memory, 1000);
  EXPECT_FALSE(cluster.device(1).free_communication);
  EXPECT_EQ(cluster.device(2).name, "cpu0");
  EXPECT_EQ(cluster.device(2).memory, kUnlimited);
  EXPECT_TRUE(cluster.device(2).free_communication);
  EXPECT_EQ(cluster.num_channels(), 3U);  // one out of each device
  EXPECT_EQ(transfer_time(*cluster.link(0, 2), 123'456), 123'456);
  EXPECT_TRUE(cluster.kind_of(2).peak_flops.empty());
}

TEST(DnnPartitioning, devices_may_be_of_one_sort_only) {
  EXPECT_EQ(read_dnn_partitioning(workload(node(1)), "m").cluster->num_devices(), 1U);
  const Model model = read_dnn_partitioning(
      workload(node(1), "", "\"maxSizePerFPGA\": 9, \"maxFPGAs\": 0, \"maxCPUs\": 2"), "m");
  EXPECT_EQ(model.cluster->device(0).name, "cpu0");
  EXPECT_EQ(model.graph->op_name(0), "1");  // a node without a name
}

TEST(DnnPartitioning, mistakes_in_nodes_name_the_node_and_the_field) {
  EXPECT_THAT(
      dnn_partitioning_error(workload("{\"id\": 4, \"cpuLatency\": 1, \"fpgaLatency\": 1}")),
      HasSubstr("node 4: size: is missing"));
  EXPECT_THAT(dnn_partitioning_error(workload("{\"cpuLatency\": 1}")),
              HasSubstr("nodes[0]: id: is missing"));
  EXPECT_THAT(dnn_partitioning_error(workload("{\"id\": 4, \"cpuLatency\": -1}")),
              HasSubstr("node 4: cpuLatency: -1"));
  EXPECT_THAT(dnn_partitioning_error(workload("{\"id\": 4, \"cpuLatency\": \"1\"}")),
              HasSubstr("node 4: cpuLatency: \"1\""));
  EXPECT_THAT(dnn_partitioning_error(workload("{\"id\": 1.5}")),
              HasSubstr("id: 1.5: expected a whole number"));
  EXPECT_THAT(dnn_partitioning_error(workload(node(4, ", \"supportedOnFpga\": 2"))),
              HasSubstr("node 4: supportedOnFpga: 2: expected true, false, 1 or 0"));
  EXPECT_THAT(dnn_partitioning_error(workload(node(4) + "," + node(4))),
              HasSubstr("node 4: id: is used twice"));
  EXPECT_THAT(dnn_partitioning_error(workload("7")), HasSubstr("nodes[0]"));
  EXPECT_THAT(dnn_partitioning_error(workload("")), HasSubstr("nodes: there are none"));
  EXPECT_THAT(
      dnn_partitioning_error(workload("{\"id\": 1, \"cpuLatency\": 1, \"fpgaLatency\": null, "
                                      "\"size\": 1}")),
      HasSubstr("node 1: fpgaLatency: is missing"));
}

TEST(DnnPartitioning, mistakes_in_edges_are_named) {
  const std::string nodes = node(1) + "," + node(2) + "," + node(3);
  EXPECT_THAT(dnn_partitioning_error(workload(nodes, edge(1, 9))),
              HasSubstr("edges[0]: destId: there is no node 9"));
  EXPECT_THAT(dnn_partitioning_error(workload(nodes, edge(1, 2, "0.5") + "," + edge(1, 3, "0.25"))),
              AllOf(HasSubstr("node 1: cost"), HasSubstr("0.5 and 0.25")));
  EXPECT_THAT(dnn_partitioning_error(workload(nodes, "{\"sourceId\": 1, \"destId\": 2}")),
              HasSubstr("edges[0]: cost: is missing"));
  EXPECT_THAT(dnn_partitioning_error(workload(nodes, edge(2, 2))),
              HasSubstr("node 2: is part of a cycle"));
  const std::string cycle =
      dnn_partitioning_error(workload(nodes, edge(1, 2) + "," + edge(2, 3) + "," + edge(3, 2)));
  EXPECT_THAT(cycle, HasSubstr("is part of a cycle"));
  EXPECT_THAT(cycle, HasSubstr("2 -> "));
  EXPECT_THAT(cycle, testing::Not(HasSubstr("1 -> ")));
}

TEST(DnnPartitioning, mistakes_in_the_head_are_named) {
  const auto head = [](const std::string& text) {
    return dnn_partitioning_error(workload(node(1), "", text));
  };
  EXPECT_THAT(head("\"maxSizePerFPGA\": 9, \"maxFPGAs\": 0, \"maxCPUs\": 0"),
              HasSubstr("maxFPGAs, maxCPUs: both are 0"));
  EXPECT_THAT(head("\"maxFPGAs\": 1, \"maxCPUs\": 0"), HasSubstr("maxSizePerFPGA: is missing"));
  EXPECT_THAT(head("\"maxSizePerFPGA\": 9, \"maxCPUs\": 0"), HasSubstr("maxFPGAs: is missing"));
  EXPECT_THAT(head("\"maxSizePerFPGA\": 9, \"maxFPGAs\": -1, \"maxCPUs\": 0"),
              HasSubstr("maxFPGAs: -1"));
  EXPECT_THAT(head("\"maxSizePerFPGA\": 9, \"maxFPGAs\": 5000, \"maxCPUs\": 0"),
              HasSubstr("maxFPGAs: 5000"));
  EXPECT_THAT(dnn_partitioning_error(
                  "{\"maxSizePerFPGA\": 1, \"maxFPGAs\": 1, \"maxCPUs\": 1, \"nodes\": 3}"),
              HasSubstr("nodes: expected a list"));
}

TEST(DnnPartitioning, text_that_is_not_such_json_is_refused) {
  const std::string good = workload(node(1) + "," + node(2), edge(1, 2));
  ASSERT_EQ(dnn_partitioning_error(good), "no error");
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(dnn_partitioning_error(good.substr(0, length)), "no error") << good.substr(0, length);
  }
  EXPECT_THAT(dnn_partitioning_error(good + "}"), HasSubstr("more text"));
  EXPECT_THAT(dnn_partitioning_error("[]"), HasSubstr("expected a JSON object"));
}

}  // namespace
}  // namespace emplace
