// Elementwise chains as one kernel: which ops belong to one, what it takes, and where it may lie.
#include "cost/fusion.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "cost/problem.h"

namespace emplace {
namespace {

constexpr std::int64_t kElements = 1'000'000;  // 4 MB, 40 us to write

DeviceKind fusing_kind() {
  return {.name = "gpu",
          .peak_flops = {{"float32", 1e12}},
          .memory_bandwidth = 1e11,
          .memory = Bytes{1} << 30,
          .launch_us = 5,
          .curves = CostCurves()};
}

std::shared_ptr<const Cluster> two_devices() {
  ClusterSpec spec{.name = "two", .kinds = {fusing_kind()}, .devices = {}, .links = {}};
  for (const char* name : {"d0", "d1"}) {
    spec.devices.push_back({.name = name, .kind = "gpu", .memory = Bytes{1} << 30});
  }
  spec.links.push_back({.bandwidth = 1'000'000'000});
  return std::make_shared<const Cluster>(spec);
}

class Chain {
 public:
  Chain() { x_ = add("x", "input", {}); }

  TensorId add(const std::string& name, const std::string& type, std::vector<TensorId> inputs,
               OpSpec more = {}) {
    more.name = name;
    more.type = type;
    more.inputs = std::move(inputs);
    return builder_.add(more, {{.shape = {kElements}, .dtype = DType::kFloat32}})[0];
  }
  TensorId x() const { return x_; }

  std::shared_ptr<const Problem> compiled(bool fuse, CostMode mode = CostMode::kAuto) {
    if (!graph_) graph_ = std::make_shared<const Graph>(std::move(builder_).build());
    return compile(graph_, two_devices(), CompileOptions{.cost = mode, .fuse = fuse});
  }
  Nanoseconds time(const std::string& name, bool fuse = true) {
    const auto problem = compiled(fuse);
    return problem->duration(*problem->graph().find_op(name), 0);
  }
  bool together(const std::string& a, const std::string& b) {
    const auto problem = compiled(true);
    return problem->group_of(*problem->graph().find_op(a)) ==
           problem->group_of(*problem->graph().find_op(b));
  }

 private:
  GraphBuilder builder_{"chain"};
  TensorId x_ = 0;
  std::shared_ptr<const Graph> graph_;
};

TEST(Fusion, is_off_unless_asked_for) {
  Chain chain;
  const TensorId a = chain.add("a", "relu", {chain.x()});
  chain.add("b", "tanh", {a});
  EXPECT_EQ(chain.time("a", false), 80'000);
  EXPECT_EQ(chain.time("b", false), 80'000);
  const auto apart = chain.compiled(false);
  EXPECT_NE(apart->group_of(1), apart->group_of(2));
}

TEST(Fusion, a_chain_reads_and_writes_once) {
  Chain chain;
  const TensorId a = chain.add("a", "relu", {chain.x()});
  const TensorId b = chain.add("b", "tanh", {a});
  chain.add("c", "mul", {b, chain.x()});
  EXPECT_EQ(chain.time("a"), 0);
  EXPECT_EQ(chain.time("b"), 0);
  EXPECT_EQ(chain.time("c"), 120'000);  // x for a, x for c, and the result
  EXPECT_TRUE(chain.together("a", "b"));
  EXPECT_TRUE(chain.together("b", "c"));
}

TEST(Fusion, a_tensor_with_another_reader_is_written) {
  Chain chain;
  const TensorId a = chain.add("a", "relu", {chain.x()});
  chain.add("b", "tanh", {a});
  chain.add("c", "sigmoid", {a});
  EXPECT_EQ(chain.time("a"), 80'000);
  EXPECT_EQ(chain.time("b"), 80'000);
  EXPECT_FALSE(chain.together("a", "b"));
}

TEST(Fusion, stops_at_ops_that_are_not_elementwise) {
  Chain chain;
  const TensorId a = chain.add("a", "relu", {chain.x()});
  const TensorId s = chain.add("s", "_softmax", {a});
  chain.add("b", "tanh", {s});
  EXPECT_EQ(chain.time("a"), 80'000);
  EXPECT_EQ(chain.time("s"), 80'000);
  EXPECT_FALSE(chain.together("a", "s"));
  EXPECT_FALSE(chain.together("s", "b"));
}

TEST(Fusion, branches_that_end_in_one_op_are_one_kernel) {
  Chain chain;
  const TensorId a = chain.add("a", "relu", {chain.x()});
  const TensorId b = chain.add("b", "tanh", {chain.x()});
  chain.add("c", "add", {a, b});
  EXPECT_EQ(chain.time("c"), 120'000);
  EXPECT_TRUE(chain.together("a", "b"));
}

TEST(Fusion, an_op_that_another_waits_for_ends_on_its_own) {
  Chain chain;
  const TensorId a = chain.add("a", "Relu", {chain.x()});
  chain.add("b", "Relu", {a});
  chain.add("c", "Relu", {chain.x()}, {.name = "", .type = "", .after = {"a"}});
  EXPECT_FALSE(chain.together("a", "b"));
}

TEST(Fusion, leaves_operators_that_it_does_not_know_alone) {
  Chain chain;
  const TensorId a = chain.add("a", "my_transform", {chain.x()});
  const TensorId b = chain.add("b", "Relu", {a});
  chain.add("c", "my_transform", {b});
  EXPECT_FALSE(chain.together("a", "b"));
  EXPECT_FALSE(chain.together("b", "c"));
}

TEST(Fusion, keeps_the_phases_apart) {
  Chain chain;
  const TensorId a = chain.add("a", "Relu", {chain.x()});
  chain.add("b", "Mul", {a, a}, {.name = "", .type = "", .phase = Phase::kBackward});
  EXPECT_FALSE(chain.together("a", "b"));
}

TEST(Fusion, launches_once) {
  GraphBuilder builder("small");
  auto at = builder.add({.name = "x", .type = "input"}, {{.shape = {4}, .dtype = DType::kFloat32}});
  for (int i = 0; i < 4; ++i) {
    at = builder.add({.name = "op" + std::to_string(i), .type = "relu", .inputs = at},
                     {{.shape = {4}, .dtype = DType::kFloat32}});
  }
  const auto problem = compile(std::make_shared<const Graph>(std::move(builder).build()),
                               two_devices(), CompileOptions{.fuse = true});
  EXPECT_EQ(problem->duration(4, 0), 5'000);
  EXPECT_EQ(problem->duration(1, 0) + problem->duration(2, 0) + problem->duration(3, 0), 0);
}

TEST(Fusion, measured_times_shrink_by_as_much_as_modelled_ones) {
  Chain chain;
  const TensorId a =
      chain.add("a", "relu", {chain.x()}, {.name = "", .type = "", .time_us = {{"gpu", {100, 0}}}});
  chain.add("b", "tanh", {a}, {.name = "", .type = "", .time_us = {{"gpu", {60, 0}}}});
  // Apart the model says 160 us, fused 80 us.
  EXPECT_EQ(chain.time("b"), 80'000);
  EXPECT_EQ(chain.time("a"), 0);
}

TEST(Fusion, takes_no_placement_away) {
  Chain chain;
  const TensorId a =
      chain.add("a", "relu", {chain.x()}, {.name = "", .type = "", .devices = {"d0"}});
  const TensorId b = chain.add("b", "tanh", {a}, {.name = "", .type = "", .devices = {"d1"}});
  const TensorId c = chain.add("c", "sigmoid", {b}, {.name = "", .type = "", .colocate = "shard"});
  chain.add("d", "relu", {c});
  EXPECT_FALSE(chain.together("a", "b"));
  EXPECT_FALSE(chain.together("b", "c"));
  EXPECT_FALSE(chain.together("c", "d"));
  EXPECT_EQ(chain.time("d"), 80'000);
}

TEST(Fusion, of_ops_that_share_a_colocation_takes_none_away_either) {
  Chain chain;
  const OpSpec shard{.name = "", .type = "", .colocate = "shard"};
  const TensorId a = chain.add("a", "relu", {chain.x()}, shard);
  chain.add("b", "tanh", {a}, shard);
  EXPECT_EQ(chain.time("a"), 0);
  EXPECT_EQ(chain.time("b"), 80'000);
}

TEST(Fusion, a_chain_keeps_views_and_parameters_in_place) {
  GraphBuilder builder("view");
  const TensorSpec vector{.shape = {kElements}, .dtype = DType::kFloat32};
  const auto x = builder.add({.name = "x", .type = "input"}, {vector});
  const auto a = builder.add({.name = "a", .type = "relu", .inputs = x}, {vector});
  const auto v = builder.add({.name = "v", .type = "view", .inputs = a, .view = true}, {vector});
  builder.add({.name = "b", .type = "relu", .inputs = v}, {vector});
  const auto problem = compile(std::make_shared<const Graph>(std::move(builder).build()),
                               two_devices(), CompileOptions{.fuse = true});
  EXPECT_EQ(problem->group_of(1), problem->group_of(2));
  EXPECT_NE(problem->group_of(1), problem->group_of(3));
  EXPECT_EQ(problem->duration(1, 0), 80'000);
}

}  // namespace
}  // namespace emplace
