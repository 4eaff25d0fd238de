#include "tensor/lower.h"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "sim/simulator.h"

#include "tensor/coarsen.h"
#include "tensor/decompose.h"
#include "tensor/evaluate.h"
#include "tensor/methods/all.h"
#include "tensor/topology.h"

#include "zoo/registry.h"

namespace emplace {
namespace {

std::shared_ptr<const Cluster> two_devices() {
  ClusterSpec spec{.name = "two", .kinds = {}, .devices = {}, .links = {}};
  spec.devices.push_back({.name = "gpu0", .kind = "v100", .memory = 1LL << 34});
  spec.devices.push_back({.name = "gpu1", .kind = "v100", .memory = 1LL << 34});
  spec.links.push_back({.bandwidth = 1'000'000'000});
  return std::make_shared<const Cluster>(std::move(spec));
}

// x [4, 6] times w [6, 8].
Graph product() {
  GraphBuilder builder("product");
  const auto x =
      builder.add({.name = "x", .type = "input"}, {{.shape = {4, 6}, .dtype = DType::kFloat32}});
  const auto w = builder.add({.name = "w", .type = "parameter"},
                             {{.shape = {6, 8}, .dtype = DType::kFloat32}});
  builder.add({.name = "y", .type = "MatMul", .inputs = {x[0], w[0]}, .flops = 384},
              {{.shape = {4, 8}, .dtype = DType::kFloat32}});
  return std::move(builder).build();
}

Plan plan_of(Cuts x, Cuts w, Cuts y, Cuts op) {
  return {.method = "test",
          .workers = Workers({2}),
          .tensors = {std::move(x), std::move(w), std::move(y)},
          .ops = {{kUncut}, {kUncut}, std::move(op)}};
}

std::multiset<std::string> types_of(const Graph& graph) {
  std::multiset<std::string> types;
  for (OpId op = 0; op < graph.num_ops(); ++op) types.emplace(graph.type(op));
  return types;
}

// Variables of the product: m, n, k.
TEST(Lower, rows_of_a_product_need_nothing_but_the_weights) {
  const Graph graph = product();
  const Descriptions descriptions(graph);
  const LoweredGraph lowered =
      lower(graph, descriptions, plan_of({0}, {kUncut}, {0}, {0}), {"gpu0", "gpu1"});
  EXPECT_EQ(lowered.moved, 0);
  EXPECT_EQ(
      types_of(lowered.graph),
      (std::multiset<std::string>{"MatMul", "MatMul", "input", "input", "parameter", "parameter"}));
  const auto piece = lowered.graph.find_op("y@1");
  ASSERT_TRUE(piece);
  EXPECT_EQ(lowered.graph.flops(*piece), 192);
  EXPECT_EQ(lowered.worker_of[*piece], 1U);
}

// Partial sums of [4, 8]: each sends the other its half, 16 numbers, and adds what it gets.
TEST(Lower, partial_sums_are_exchanged_and_added) {
  const Graph graph = product();
  const Descriptions descriptions(graph);
  const LoweredGraph lowered =
      lower(graph, descriptions, plan_of({1}, {0}, {0}, {2}), {"gpu0", "gpu1"});
  EXPECT_EQ(lowered.moved, 2 * 16 * 4);
  const auto types = types_of(lowered.graph);
  EXPECT_EQ(types.count("PartSum"), 2U);
  EXPECT_EQ(types.count("PartSlice"), 4U);
}

TEST(Lower, weights_that_are_cut_are_put_together) {
  const Graph graph = product();
  const Descriptions descriptions(graph);
  const LoweredGraph lowered =
      lower(graph, descriptions, plan_of({0}, {1}, {0}, {0}), {"gpu0", "gpu1"});
  EXPECT_EQ(lowered.moved, 6 * 8 * 4);  // each gets the other half
  EXPECT_EQ(types_of(lowered.graph).count("PartJoin"), 2U);
}

// All blocks of a tensor come in one launch, and only the worker's own are copied.
TEST(Lower, what_is_gathered_from_several_is_one_op) {
  const Graph graph = product();
  const Descriptions descriptions(graph);
  Plan plan = plan_of({0, 0}, {1, 1}, {0, 0}, {0, 0});
  plan.workers = Workers({2, 2});
  plan.ops[0] = plan.ops[1] = {kUncut, kUncut};
  const LoweredGraph lowered = lower(graph, descriptions, plan, {"gpu0", "gpu1", "gpu2", "gpu3"});
  EXPECT_EQ(types_of(lowered.graph).count("PartJoin"), 4U);
  for (OpId op = 0; op < lowered.graph.num_ops(); ++op) {
    if (lowered.graph.type(op) != "PartJoin") continue;
    EXPECT_EQ(lowered.graph.inputs(op).size(), 4U);
    EXPECT_EQ(lowered.graph.bytes_moved(op), 2 * 6 * 2 * 4);
  }
}

// Two products with the same weights, far apart.
TEST(Lower, what_the_plan_holds_is_fetched_once) {
  GraphBuilder builder("far");
  const auto matrix = [](std::int64_t a, std::int64_t b) {
    return TensorSpec{.shape = {a, b}, .dtype = DType::kFloat32};
  };
  const auto w = builder.add({.name = "w", .type = "parameter"}, {matrix(8, 8)});
  TensorId x = builder.add({.name = "x", .type = "input"}, {matrix(4, 8)})[0];
  const auto multiply = [&](const std::string& name) {
    x = builder.add({.name = name, .type = "MatMul", .inputs = {x, w[0]}}, {matrix(4, 8)})[0];
  };
  multiply("first");
  for (int i = 0; i < 40; ++i) {
    x = builder.add({.name = fmt::format("relu{}", i), .type = "Relu", .inputs = {x}},
                    {matrix(4, 8)})[0];
  }
  multiply("second");
  const Graph graph = std::move(builder).build();
  const Descriptions descriptions(graph);
  Plan plan{.method = "test", .workers = Workers({2}), .tensors = {}, .ops = {}};
  plan.tensors.assign(graph.num_tensors(), {0});
  plan.ops.assign(graph.num_ops(), {0});
  const auto moved = [&] { return lower(graph, descriptions, plan, {"gpu0", "gpu1"}).moved; };
  constexpr Bytes kWeights = 8 * 8 * 4;  // each gets the other half
  EXPECT_EQ(moved(), 2 * kWeights);
  plan.held.assign(graph.num_tensors(), 0);
  plan.held[0] = 1;
  EXPECT_EQ(moved(), kWeights);
}

TEST(Lower, the_memory_of_the_whole_is_shared) {
  const auto graph = std::make_shared<const Graph>(
      decompose(zoo::build_model("stacked-rnn:layers=2,sequence=4,hidden=512,batch=32")));
  const auto cluster = two_devices();
  const auto problem = compile(graph, cluster);
  const WorkerDevices on = workers_on(*problem);
  const PartitionInput input(*graph);
  PartitionContext context(input, problem, on);
  const Plan plan = all_partition_methods().make({"tofu"})->find(context, {}, Rng(1));
  const PlanOutcome outcome = evaluate_plan(input, plan, cluster, on.devices);
  const Simulator simulator(problem);
  std::vector<Bytes> peaks(2);
  simulator.evaluate(Placement(problem->num_ops(), 0), ReadyOrder(), *simulator.make_workspace(),
                     peaks);
  for (const Bytes peak : outcome.peaks) {
    EXPECT_NEAR(static_cast<double>(peak), static_cast<double>(peaks[0]) / 2,
                0.15 * static_cast<double>(peaks[0]) / 2);
  }
}

// Everybody reads all rows of x, long after they were made: each waits for its own progress alone.
TEST(Lower, what_is_sent_late_waits_for_its_own_receiver) {
  const TensorSpec square{.shape = {4, 4}, .dtype = DType::kFloat32};
  GraphBuilder builder("late");
  const auto x = builder.add({.name = "x", .type = "input"}, {square});
  std::vector<TensorId> y = builder.add({.name = "y", .type = "input"}, {square});
  for (int i = 0; i < 12; ++i) {
    y = builder.add({.name = fmt::format("relu{}", i), .type = "Relu", .inputs = y}, {square});
  }
  builder.add({.name = "z", .type = "MatMul", .inputs = {y[0], x[0]}}, {square});
  const Graph graph = std::move(builder).build();
  const Descriptions descriptions(graph);
  const Plan plan{.method = "test",
                  .workers = Workers({4}),
                  .tensors = std::vector<Cuts>(graph.num_tensors(), Cuts{0}),
                  .ops = std::vector<Cuts>(graph.num_ops(), Cuts{0})};
  const LoweredGraph lowered = lower(graph, descriptions, plan, {"gpu0", "gpu1", "gpu2", "gpu3"});
  int late = 0;
  for (OpId op = 0; op < lowered.graph.num_ops(); ++op) {
    if (lowered.graph.type(op) != "PartSlice" || lowered.graph.after(op).empty()) continue;
    ++late;
    const Worker waits_for = lowered.worker_of[lowered.graph.after(op)[0]];
    for (const OpId reader : lowered.graph.consumers(lowered.graph.outputs(op)[0])) {
      EXPECT_EQ(lowered.worker_of[reader], waits_for) << lowered.graph.op_name(op);
    }
  }
  EXPECT_EQ(late, 4 * 3);
}

// Nothing is there to divide, and nothing may break.
TEST(Lower, empty_and_shapeless_tensors_are_everywhere) {
  GraphBuilder builder("odd");
  const auto x =
      builder.add({.name = "x", .type = "input"}, {{.shape = {0, 4}, .dtype = DType::kFloat32}});
  const auto y = builder.add({.name = "y", .type = "Relu", .inputs = x},
                             {{.shape = {0, 4}, .dtype = DType::kFloat32}});
  builder.add({.name = "z", .type = "Mystery", .inputs = y}, {{.bytes = 100}});
  const Graph graph = std::move(builder).build();
  const Descriptions descriptions(graph);
  const Plan plan{.method = "test",
                  .workers = Workers({2}),
                  .tensors = {{kUncut}, {kUncut}, {kUncut}},
                  .ops = {{kUncut}, {kUncut}, {kUncut}}};
  EXPECT_EQ(lower(graph, descriptions, plan, {"gpu0", "gpu1"}).moved, 0);
}

TEST(Coarsen, joins_gradients_elementwise_runs_and_steps) {
  const Graph graph =
      decompose(zoo::build_model("stacked-rnn:layers=1,sequence=5,hidden=16,batch=8"));
  const Descriptions descriptions(graph);
  const Classes all = coarsen(graph, descriptions);
  const Classes none =
      coarsen(graph, descriptions, {.gradients = false, .elementwise = false, .steps = false});
  EXPECT_EQ(none.num_tensors, graph.num_tensors());
  EXPECT_LT(all.num_tensors, graph.num_tensors() / 4);
  const auto tensor = [&](const char* op) { return graph.outputs(*graph.find_op(op))[0]; };
  EXPECT_EQ(all.of_tensor[tensor("layer.0.step.0.Mul_2")],
            all.of_tensor[tensor("layer.0.step.4.Mul_2")]);
  EXPECT_EQ(all.of_op[*graph.find_op("layer.0.step.1.Gemm")],
            all.of_op[*graph.find_op("layer.0.step.3.Gemm")]);
  EXPECT_EQ(all.of_tensor[tensor("layer.0.weight_hh")],
            all.of_tensor[tensor("layer.0.step.2.Gemm_1/grad/1")]);
}

TEST(Decompose, takes_apart_what_is_divided_differently) {
  const Graph step = decompose(zoo::build_model("resnet-50:batch=4,image=32"));
  const auto types = types_of(step);
  EXPECT_EQ(types.count("BatchNormalization"), 0U);
  EXPECT_EQ(types.count("BatchNormalizationGrad"), 0U);
  EXPECT_EQ(types.count("BatchNormStatistics"), types.count("BatchNormApply"));
  EXPECT_EQ(types.count("BatchNormGradStatistics"), types.count("BatchNormStatistics"));
  // By running statistics it is elementwise as it is.
  const Graph forward = decompose(zoo::build_model("resnet-50:batch=4,image=32,training=false"));
  EXPECT_EQ(types_of(forward).count("BatchNormStatistics"), 0U);
}

// As training exports of PyTorch have it: with running statistics, and in old ones the batch's too.
TEST(Decompose, takes_apart_batch_norms_with_any_outputs) {
  for (const std::size_t outputs : {1U, 3U, 5U}) {
    GraphBuilder builder("norm");
    const auto image = [](Shape shape) {
      return TensorSpec{.shape = std::move(shape), .dtype = DType::kFloat32};
    };
    std::vector<TensorId> inputs = builder.add({.name = "x", .type = "input"}, {image({8, 4, 3})});
    for (const char* name : {"scale", "bias", "mean", "variance"}) {
      inputs.push_back(builder.add({.name = name, .type = "parameter"}, {image({4})})[0]);
    }
    std::vector<TensorSpec> made{image({8, 4, 3})};
    while (made.size() < outputs) made.push_back(image({4}));
    builder.add({.name = "norm",
                 .type = "BatchNormalization",
                 .inputs = inputs,
                 .attributes = {{"training_mode", std::int64_t{1}}}},
                made);
    const Graph graph = decompose(std::move(builder).build());
    EXPECT_EQ(types_of(graph).count("BatchNormalization"), 0U) << outputs;
    EXPECT_EQ(types_of(graph).count("BatchNormRunning"), outputs / 2) << outputs;
    const Descriptions descriptions(graph);
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      EXPECT_TRUE(graph.is_source(op) || descriptions[op] != nullptr) << graph.op_name(op);
    }
  }
}

}  // namespace
}  // namespace emplace
