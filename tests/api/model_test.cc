// Models, clusters and problems by the public headers alone.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/fork_model.h"
#include "support/command.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string graph_error(std::vector<OpDescription> ops) {
  return error_text([&] { build_graph("bad", ops); });
}

TEST(Api, version_has_three_numbers) {
  EXPECT_THAT(version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(BuildGraph, has_what_was_described) {
  const auto graph = build_graph("fork", fork_ops());
  const GraphSummary summary = summarize(*graph);
  EXPECT_EQ(summary.name, "fork");
  EXPECT_EQ(summary.ops, 4U);
  EXPECT_EQ(summary.tensors, 4U);
  EXPECT_FALSE(summary.training);
  const OpView join = op_of(*graph, 3);
  EXPECT_EQ(join.name, "join");
  EXPECT_EQ(join.type, "add");
  EXPECT_EQ(join.phase, "forward");
  EXPECT_THAT(join.inputs, ElementsAre(1, 2));
  const TensorView left = tensor_of(*graph, 1);
  EXPECT_EQ(left.producer, 1U);
  EXPECT_THAT(left.consumers, ElementsAre(3));
  EXPECT_EQ(left.bytes, 1000);
  EXPECT_EQ(left.dtype, "") << "only its size is known";
}

TEST(BuildGraph, takes_shapes_phases_and_groups) {
  std::vector<OpDescription> ops{
      {.name = "w", .type = "parameter", .outputs = {{.shape = {3, 5}, .dtype = "float16"}}},
      {.name = "g",
       .type = "grad",
       .inputs = {{.op = 0}},
       .outputs = {{.shape = {15}}},
       .phase = "backward",
       .module = "layer.0",
       .flops = 30,
       .persistent_bytes = 8,
       .colocate = "layer"}};
  const auto graph = build_graph("step", ops);
  EXPECT_EQ(tensor_of(*graph, 0).bytes, 30);
  EXPECT_EQ(tensor_of(*graph, 0).dtype, "float16");
  EXPECT_THAT(tensor_of(*graph, 1).shape, ElementsAre(15));
  EXPECT_EQ(op_of(*graph, 1).module, "layer.0");
  const GraphSummary summary = summarize(*graph);
  EXPECT_TRUE(summary.training);
  EXPECT_EQ(summary.parameters, 15);
  EXPECT_EQ(summary.flops, 30);
}

TEST(BuildGraph, names_the_op_that_is_wrong) {
  std::vector<OpDescription> ops = fork_ops();
  ops[1].inputs[0].op = 1;
  EXPECT_THAT(graph_error(ops), AllOf(HasSubstr("op 'left'"), HasSubstr("does not come before")));
  ops = fork_ops();
  ops[1].inputs[0].output = 3;
  EXPECT_THAT(graph_error(ops), AllOf(HasSubstr("op 'left'"), HasSubstr("output 3 of op 0")));
  ops = fork_ops();
  ops[2].outputs = {{.shape = {2}, .dtype = "float31"}};
  EXPECT_THAT(graph_error(ops), AllOf(HasSubstr("op 'right'"), HasSubstr("float31")));
  ops = fork_ops();
  ops[2].phase = "sideways";
  EXPECT_THAT(graph_error(ops), AllOf(HasSubstr("op 'right'"), HasSubstr("sideways")));
  ops = fork_ops();
  ops[2].name = "left";
  EXPECT_THAT(graph_error(ops), HasSubstr("'left'"));
  ops = fork_ops();
  ops[2].time_us["p100"] = 1e12;
  EXPECT_EQ(graph_error(ops), "");
  for (const double time : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1e30}) {
    ops[2].time_us["p100"] = time;
    EXPECT_THAT(graph_error(ops), AllOf(HasSubstr("op 'right': time_us: "),
                                        HasSubstr("for 'p100'; expected microseconds")));
  }
  ops = fork_ops();
  ops[2].outputs = {{.bytes = -1}};
  EXPECT_THAT(graph_error(ops), HasSubstr("op 'right'"));
  EXPECT_THAT(error_text([] { op_of(*build_graph("fork", fork_ops()), 4); }), HasSubstr("op 4"));
  EXPECT_THAT(error_text([] { tensor_of(*build_graph("fork", fork_ops()), 9); }),
              HasSubstr("tensor 9"));
}

TEST(GraphJson, reads_back) {
  const testing::TemporaryFolder folder;
  const auto graph = build_graph("fork", fork_ops());
  const std::string text = graph_json(*graph);
  const Model model = read_model(folder.write("fork.json", text));
  EXPECT_EQ(duration_of(*compile(model.graph, p100s(1)), 1, 0), 100'000);
  // What a number looks like is settled by then.
  const std::string again = graph_json(*model.graph);
  EXPECT_EQ(graph_json(*read_model(folder.write("again.json", again)).graph), again);
  EXPECT_EQ(summarize(*model.graph).ops, 4U);
  EXPECT_EQ(model.cluster, nullptr);
  EXPECT_THAT(error_text([&] { read_model(folder.path("none.json")); }), HasSubstr("none.json"));
  EXPECT_THAT(error_text([&] { read_model(folder.write("bad.json", text.substr(0, 50))); }),
              HasSubstr("bad.json"));
}

TEST(ReadModel, builds_what_the_zoo_has) {
  std::vector<std::string> names;
  for (const ZooModel& model : zoo_models()) {
    names.push_back(model.name);
    EXPECT_FALSE(model.summary.empty()) << model.name;
  }
  EXPECT_THAT(names, AllOf(Contains("zoo:resnet-50"), Contains("family:ptb")));
  const Model forward = read_model("zoo:alexnet:training=false,batch=1");
  EXPECT_FALSE(summarize(*forward.graph).training);
  EXPECT_EQ(summarize(*forward.graph).parameters, 61'100'840);
  EXPECT_TRUE(summarize(*read_model("zoo:alexnet:batch=1").graph).training);
  EXPECT_THAT(error_text([] { read_model("zoo:alexne"); }), HasSubstr("did you mean 'alexnet'"));
}

TEST(BuildCluster, has_what_was_described) {
  const auto cluster = p100s(2, 5000);
  EXPECT_EQ(name_of(*cluster), "box");
  const std::vector<DeviceView> devices = devices_of(*cluster);
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[1].name, "gpu1");
  EXPECT_EQ(devices[1].kind, "p100");
  EXPECT_EQ(devices[1].memory, 5000);
  EXPECT_FALSE(devices[1].is_cpu);
  EXPECT_EQ(channels_of(*cluster).size(), 2U) << "one for each pair and direction";
  EXPECT_EQ(devices_of(*p100s(1))[0].memory, devices_of(*read_cluster("1xp100"))[0].memory);
}

TEST(BuildCluster, names_the_device_or_rule_that_is_wrong) {
  EXPECT_THAT(error_text([] { build_cluster("bad", {{.name = "a", .kind = "p1000"}}, {}); }),
              HasSubstr("p1000"));
  EXPECT_THAT(error_text([] {
                build_cluster("bad", {{.name = "a", .kind = "p100"}, {.name = "a", .kind = "p100"}},
                              {{.bandwidth = 1}});
              }),
              HasSubstr("'a'"));
  EXPECT_THAT(error_text([] {
                build_cluster("bad", {{.name = "a", .kind = "p100"}},
                              {{.from = "z", .bandwidth = 1}});
              }),
              HasSubstr("z"));
}

TEST(ReadCluster, reads_presets_and_what_cluster_yaml_writes) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT(device_kinds(), Contains("p100"));
  for (const std::string& preset : example_presets()) {
    const auto cluster = read_cluster(preset);
    const std::string text = cluster_yaml(*cluster);
    EXPECT_EQ(cluster_yaml(*read_cluster(folder.write("c.yaml", text))), text) << preset;
  }
  EXPECT_THAT(error_text([] { read_cluster("4xq100"); }), HasSubstr("4xq100"));
}

TEST(Compile, takes_measured_times_and_estimates_the_rest) {
  const auto graph = build_graph("fork", fork_ops());
  const auto problem = compile(graph, p100s(2));
  EXPECT_EQ(duration_of(*problem, 1, 0), 100'000);
  EXPECT_EQ(summarize(graph_of(*problem)).name, "fork");
  EXPECT_EQ(name_of(cluster_of(*problem)), "box");
  EXPECT_THAT(describe(*problem), AllOf(HasSubstr("4 ops"), HasSubstr("all measured")));
  const auto analytic = compile(graph, p100s(2), {.cost = CostMode::kAnalytic});
  EXPECT_NE(duration_of(*analytic, 1, 0), 100'000);
  EXPECT_THAT(
      error_text([&] { compile(graph, read_cluster("2xv100"), {.cost = CostMode::kMeasured}); }),
      AllOf(HasSubstr("left, right, join"), HasSubstr("v100")));
  EXPECT_THAT(error_text([&] { duration_of(*problem, 7, 0); }), HasSubstr("op 7"));
  EXPECT_THAT(error_text([&] { duration_of(*problem, 0, 2); }), HasSubstr("device 2"));
}

TEST(Compile, asks_a_callers_costs_in_the_order_given) {
  const auto graph = build_graph("fork", fork_ops());
  const auto mine = costs_from("mine",
                               [](const Graph& of, OpId op, const std::string& device,
                                  const std::string& kind) -> std::optional<double> {
                                 EXPECT_EQ(kind, "p100");
                                 if (op_of(of, op).name == "left" && device == "gpu1") return 7.5;
                                 return std::nullopt;
                               });
  const auto problem = compile(graph, p100s(2), {.sources = {mine, measured_costs()}});
  EXPECT_EQ(duration_of(*problem, 1, 0), 100'000);
  EXPECT_EQ(duration_of(*problem, 1, 1), 7'500);
  EXPECT_THAT(error_text([&] { compile(graph, p100s(2), {.sources = {mine}}); }),
              HasSubstr("left, right, join"));
  const auto negative =
      costs_from("negative", [](const auto&...) -> std::optional<double> { return -1; });
  EXPECT_NE(error_text([&] { compile(graph, p100s(2), {.sources = {negative}}); }), "");
  for (const double time : {std::nan(""), HUGE_VAL, 1e30}) {
    const auto wrong =
        costs_from("wrong", [&](const auto&...) -> std::optional<double> { return time; });
    EXPECT_THAT(
        error_text([&] { compile(graph, p100s(2), {.sources = {wrong}}); }),
        AllOf(HasSubstr("op 'left': time_us: "), HasSubstr("for 'gpu0'; expected microseconds")));
  }
}

TEST(Compile, keeps_rules) {
  const auto graph = build_graph("fork", fork_ops());
  const CompileOptions pinned{.rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "right=gpu1")}};
  const auto problem = compile(graph, p100s(2), pinned);
  EXPECT_THAT(error_text([&] { simulate(problem, {0, 0, 0, 0}); }), HasSubstr("op 'right'"));
  EXPECT_THAT(error_text([] { DeviceRule::parse(DeviceRule::Kind::kPin, "left"); }),
              HasSubstr("expected OPS=DEVICE"));
  EXPECT_THAT(error_text([&] {
                compile(graph, p100s(2),
                        {.rules = {DeviceRule::parse(DeviceRule::Kind::kForbid, "right=*")}});
              }),
              HasSubstr("op 'right'"));
}

}  // namespace
}  // namespace emplace
