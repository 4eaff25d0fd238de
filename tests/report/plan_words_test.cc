#include "report/plan_words.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "graph/training.h"

namespace emplace {
namespace {

// Two layers: x [64, 32] times w1 [32, 128], and that times w2 [128, 32].
struct Layers {
  Layers() : graph(build()), descriptions(graph) {}

  static Graph build() {
    GraphBuilder builder("layers");
    const auto matrix = [](std::int64_t a, std::int64_t b) {
      return TensorSpec{.shape = {a, b}, .dtype = DType::kFloat32};
    };
    const auto x = builder.add({.name = "x", .type = "input"}, {matrix(64, 32)});
    const auto w1 = builder.add({.name = "w1", .type = "parameter"}, {matrix(32, 128)});
    const auto w2 = builder.add({.name = "w2", .type = "parameter"}, {matrix(128, 32)});
    const auto h = builder.add(
        {.name = "h", .type = "MatMul", .inputs = {x[0], w1[0]}, .flops = 1000}, {matrix(64, 128)});
    builder.add({.name = "y", .type = "MatMul", .inputs = {h[0], w2[0]}, .flops = 1000},
                {matrix(64, 32)});
    return std::move(builder).build();
  }

  // Variables of a product: m, n, k.
  std::string words(const std::vector<int>& factors, Cuts first, Cuts second, Cuts weights,
                    const std::vector<std::uint8_t>& held = {}) const {
    const Cuts none(factors.size(), kUncut);
    const Plan plan{.method = "test",
                    .workers = Workers(factors),
                    .tensors = {none, weights, weights, none, none},
                    .ops = {none, none, none, std::move(first), std::move(second)},
                    .held = held};
    return plan_in_words(graph, descriptions, plan);
  }

  Graph graph;
  Descriptions descriptions;
};

TEST(PlanWords, have_the_names_that_people_know) {
  const Layers layers;
  EXPECT_EQ(layers.words({2, 2}, {0, 0}, {0, 0}, {kUncut, kUncut}),
            "Among 4 devices: data parallel.");
  EXPECT_EQ(layers.words({2}, {0}, {0}, {0}),
            "Among 2 devices: FSDP, or ZeRO stage 3 (examples divided, weights in parts that are "
            "fetched).");
  EXPECT_EQ(layers.words({2}, {0}, {0}, {0}, {0, 1, 1}),
            "Among 2 devices: ZeRO stage 2 (examples divided, weights in parts that are fetched "
            "once a step and kept).");
  EXPECT_EQ(layers.words({2}, {0}, {0}, {0}, {0, 0, 1}),
            "Among 2 devices: FSDP, or ZeRO stage 3 (examples divided, weights in parts that are "
            "fetched; 50 % of them once a step and kept).");
  EXPECT_EQ(layers.words({2}, {1}, {2}, {0}),
            "Among 2 devices: tensor parallel: products by columns 50 % and by rows with a sum "
            "50 %.");
  EXPECT_EQ(layers.words({2}, {kUncut}, {kUncut}, {kUncut}),
            "Among 2 devices: everything whole, in copies.");
}

// Weights everywhere, their updates divided.
TEST(PlanWords, tell_where_gradients_and_state_lie) {
  const Graph graph = training_step(Layers::build(), {.optimizer = Optimizer::kAdam});
  const Descriptions descriptions(graph);
  const auto words = [&](bool gradients) {
    Plan plan{.method = "test", .workers = Workers({2}), .tensors = {}, .ops = {}};
    plan.tensors.assign(graph.num_tensors(), {kUncut});
    plan.ops.assign(graph.num_ops(), {kUncut});
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.is_source(op)) continue;
      plan.ops[op] = {0};
      if (graph.phase(op) != Phase::kUpdate || !gradients) continue;
      plan.tensors[graph.inputs(op)[1]] = {0};
    }
    return plan_in_words(graph, descriptions, plan);
  };
  EXPECT_EQ(words(false),
            "Among 2 devices: ZeRO stage 1 (examples divided, weights everywhere, the optimizer's "
            "state in parts).");
  EXPECT_EQ(words(true),
            "Among 2 devices: ZeRO stage 2 (examples divided, weights everywhere, gradients and "
            "the optimizer's state in parts).");
}

TEST(PlanWords, tell_levels_apart) {
  const Layers layers;
  EXPECT_EQ(layers.words({2, 2, 2}, {0, 1, 1}, {0, 2, 2}, {kUncut, 0, 0}),
            "Among 2 groups of 4: data parallel. Within them, among 4 devices: tensor parallel: "
            "products by columns 50 % and by rows with a sum 50 %.");
}

// A convolution, its normalisation and another one. Channels are no heads, and a norm no product.
TEST(PlanWords, convolutions_are_not_called_attention) {
  const auto tensor = [](Shape shape) {
    return TensorSpec{.shape = std::move(shape), .dtype = DType::kFloat32};
  };
  GraphBuilder builder("images");
  const auto x = builder.add({.name = "x", .type = "input"}, {tensor({8, 4, 6, 6})});
  const auto w1 = builder.add({.name = "w1", .type = "parameter"}, {tensor({8, 4, 1, 1})});
  const auto w2 = builder.add({.name = "w2", .type = "parameter"}, {tensor({4, 8, 1, 1})});
  const auto scale = builder.add({.name = "scale", .type = "parameter"}, {tensor({8})});
  const auto h = builder.add({.name = "h", .type = "Conv", .inputs = {x[0], w1[0]}, .flops = 1000},
                             {tensor({8, 8, 6, 6})});
  const auto sums =
      builder.add({.name = "sums", .type = "BatchNormStatistics", .inputs = h}, {tensor({2, 8})});
  const auto n = builder.add({.name = "n",
                              .type = "BatchNormApply",
                              .inputs = {h[0], sums[0], scale[0], scale[0]},
                              .flops = 1000},
                             {tensor({8, 8, 6, 6})});
  builder.add({.name = "y", .type = "Conv", .inputs = {n[0], w2[0]}, .flops = 1000},
              {tensor({8, 4, 6, 6})});
  const Graph graph = std::move(builder).build();
  const Descriptions descriptions(graph);
  const auto variable = [&](const char* op, const char* name) {
    const tdl::Description& description = *descriptions[*graph.find_op(op)];
    for (std::size_t v = 0; v < description.variables.size(); ++v) {
      if (description.variables[v].name == name) return static_cast<std::int8_t>(v);
    }
    ADD_FAILURE() << op << " has no " << name;
    return kUncut;
  };
  Plan plan{.method = "test", .workers = Workers({2}), .tensors = {}, .ops = {}};
  plan.tensors.assign(graph.num_tensors(), {kUncut});
  plan.ops.assign(graph.num_ops(), {kUncut});
  plan.ops[*graph.find_op("h")] = {variable("h", "o")};
  plan.ops[*graph.find_op("n")] = {variable("n", "c")};
  plan.ops[*graph.find_op("y")] = {variable("y", "c")};
  EXPECT_EQ(plan_in_words(graph, descriptions, plan),
            "Among 2 devices: tensor parallel: products by columns 50 % and by rows with a sum "
            "50 %.");
}

// Whose second dimension is the heads.
TEST(PlanWords, stacked_products_are_divided_by_heads) {
  const TensorSpec stack{.shape = {8, 4, 6, 6}, .dtype = DType::kFloat32};
  GraphBuilder builder("stacked");
  const auto x = builder.add({.name = "x", .type = "input"}, {stack});
  builder.add({.name = "y", .type = "MatMul", .inputs = {x[0], x[0]}, .flops = 1000}, {stack});
  const Graph graph = std::move(builder).build();
  const Descriptions descriptions(graph);
  const Plan plan{
      .method = "test", .workers = Workers({2}), .tensors = {{0}, {0}}, .ops = {{kUncut}, {1}}};
  EXPECT_EQ(plan_in_words(graph, descriptions, plan), "Among 2 devices: products by heads 100 %.");
}

}  // namespace
}  // namespace emplace
