#include "graph/gradient_recompute.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/presets.h"
#include "graph/colocation.h"
#include "graph/training.h"

#include "sim/simulator.h"

#include "io/readers.h"
#include "support/backward_text.h"
#include "zoo/layers.h"
#include "zoo/net.h"
#include "zoo/operators.h"

namespace emplace {
namespace {

using zoo::Net;
using zoo::Value;
using Lines = std::vector<std::string>;

constexpr std::int64_t kBatch = 512;

// Blocks "block.0", "block.1", ... of two layers each, then a head.
Graph blocks(std::int64_t count, double dropout = 0) {
  Net net("blocks");
  Value x = net.input("x", {kBatch, 32});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto scope = net.scope("block", i);
    x = relu(net, zoo::linear(net, "in", x, 256, false));
    x = zoo::dropout(net, x, dropout);
    x = relu(net, zoo::linear(net, "out", x, 32, false));
  }
  zoo::classification_loss(net, zoo::linear(net, "head", x, 10, false),
                           net.input("labels", {kBatch}, DType::kInt64));
  return std::move(net).build();
}

std::int64_t flops_of(const Graph& graph, Phase phase, std::string_view module_start = {}) {
  std::int64_t sum = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != phase || !graph.module(op).starts_with(module_start)) continue;
    sum += graph.flops(op).value_or(0);
  }
  return sum;
}

Bytes peak(const Graph& graph) {
  const auto problem =
      compile(std::make_shared<const Graph>(graph), read_cluster("1xp100"), CostMode::kAnalytic);
  return Simulator(problem).run(Placement(graph.num_ops(), 0), Schedule{}).devices[0].peak;
}

TEST(Recompute, trades_memory_for_the_segments_forward_flops) {
  const Graph forward = blocks(24);
  const Graph plain = training_step(forward);
  const Graph again = training_step(forward, {.recompute = {"block.*"}});
  EXPECT_EQ(flops_of(again, Phase::kBackward) - flops_of(plain, Phase::kBackward),
            flops_of(forward, Phase::kForward, "block"));
  EXPECT_EQ(flops_of(again, Phase::kForward), flops_of(plain, Phase::kForward));
  // A block's hidden activations are eight times as large as what is between the blocks.
  EXPECT_LT(peak(again), peak(plain) / 2);
}

TEST(Recompute, one_block_has_exactly_these_copies) {
  Lines copies;
  const Graph graph = training_step(blocks(1), {.recompute = {"block.0"}});
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (!graph.op_name(op).ends_with("/recompute")) continue;
    std::string text = op_text(graph, op);
    for (const OpId before : graph.after(op)) {
      text += fmt::format(" after {}", graph.op_name(before));
    }
    EXPECT_EQ(graph.phase(op), Phase::kBackward);
    copies.push_back(text);
  }
  EXPECT_EQ(copies, (Lines{
                        "block.0.in.Gemm/recompute = Gemm(x, block.0.in.weight) [512, 256] after "
                        "head.Gemm/grad/0",
                        "block.0.Relu/recompute = Relu(block.0.in.Gemm/recompute) [512, 256]",
                        "block.0.out.Gemm/recompute = Gemm(block.0.Relu/recompute, "
                        "block.0.out.weight) [512, 32]",
                        "block.0.Relu_1/recompute = Relu(block.0.out.Gemm/recompute) [512, 32]",
                    }));
  EXPECT_EQ(op_text(graph, *graph.find_op("block.0.Relu/grad")),
            "block.0.Relu/grad = ReluGrad(block.0.out.Gemm/grad/0, block.0.Relu/recompute) "
            "[512, 256]");
  // The head is outside: it reads what the forward pass made.
  EXPECT_EQ(op_text(graph, *graph.find_op("head.Gemm/grad/1")),
            "head.Gemm/grad/1 = Gemm(loss.SoftmaxCrossEntropyLoss/grad, block.0.Relu_1) [10, 32]");
}

TEST(Recompute, only_what_the_backward_pass_needs_is_computed_again) {
  Net net("tail");
  {
    const auto scope = net.scope("part");
    const Value y = relu(net, gemm(net, net.input("x", {2, 4}), net.parameter("w", {4, 4}), {}));
    add(net, y, net.parameter("b", {4}));  // whose result no gradient reads
  }
  const Graph graph = training_step(std::move(net).build(), {.recompute = {"part"}});
  EXPECT_TRUE(graph.find_op("part.Relu/recompute"));
  EXPECT_FALSE(graph.find_op("part.Add/recompute"));
}

TEST(Recompute, dropout_masks_are_kept_and_used_again) {
  const Graph graph = training_step(blocks(1, 0.5), {.recompute = {"block.*"}});
  EXPECT_EQ(op_text(graph, *graph.find_op("block.0.Dropout/recompute")),
            "block.0.Dropout/recompute = DropoutGrad(block.0.Relu/recompute, block.0.Dropout:1) "
            "[512, 256]");
  EXPECT_EQ(op_text(graph, *graph.find_op("block.0.Dropout/grad")),
            "block.0.Dropout/grad = DropoutGrad(block.0.out.Gemm/grad/0, block.0.Dropout:1) "
            "[512, 256]");
}

TEST(Recompute, copies_stay_with_their_forward_op_when_asked) {
  const Graph graph =
      training_step(blocks(2), {.colocate_gradients = true, .recompute = {"block.1"}});
  const Colocation groups = find_colocation(graph);
  EXPECT_EQ(groups.group_of[*graph.find_op("block.1.Relu")],
            groups.group_of[*graph.find_op("block.1.Relu/recompute")]);
  EXPECT_FALSE(graph.find_op("block.0.Relu/recompute"));
}

TEST(Recompute, segments_are_the_outermost_modules_that_match) {
  const Graph graph = blocks(3);
  const auto segment = [&](const std::vector<std::string>& patterns, const char* op) {
    return find_segments(graph, patterns)[*graph.find_op(op)];
  };
  const std::vector<std::string> each{"block.*"};
  EXPECT_EQ(segment(each, "block.0.in.Gemm"), segment(each, "block.0.Relu"));
  EXPECT_NE(segment(each, "block.0.Relu"), segment(each, "block.1.Relu"));
  EXPECT_EQ(segment(each, "head.Gemm"), kNoSegment);
  const std::vector<std::string> all{"block", "block.1"};
  EXPECT_EQ(segment(all, "block.0.Relu"), segment(all, "block.1.Relu"));
  const std::vector<std::string> inner{"*.in"};
  EXPECT_EQ(segment(inner, "block.0.Relu"), kNoSegment);
  EXPECT_NE(segment(inner, "block.0.in.Gemm"), kNoSegment);
  EXPECT_NE(segment(inner, "block.0.in.Gemm"), segment(inner, "block.2.in.Gemm"));
  EXPECT_TRUE(find_segments(graph, {}).empty());
}

TEST(Recompute, patterns_that_match_nothing_are_refused) {
  try {
    find_segments(blocks(1), {"block.*", "blok.0"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOption);
    EXPECT_STREQ(error.what(),
                 "recompute: 'blok.0' matches no module (did you mean 'block.0'?); there are: "
                 "block, block.0, block.0.in, block.0.out, head, loss");
  }
}

}  // namespace
}  // namespace emplace
