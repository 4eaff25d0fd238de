// What dropout leaves out follows from the seed, the op, the step and the element alone.
#include <cmath>

#include <gtest/gtest.h>

#include "graph/training.h"

#include "exec/random.h"
#include "exec/run_op.h"
#include "zoo/registry.h"

namespace emplace::exec {
namespace {

struct Draw {
  std::string name = "dropout";
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  double ratio = 0.25;
  torch::ScalarType type = torch::kFloat;
  Attributes attributes = {};
};

struct Dropped {
  Tensor result, mask;
};

Dropped drop(const Tensor& x, const Draw& draw) {
  GraphBuilder builder("dropout");
  const Shape shape(x.sizes().begin(), x.sizes().end());
  OpSpec op{.name = draw.name, .type = "Dropout", .attributes = draw.attributes};
  op.attributes.set("ratio", draw.ratio);
  op.inputs = builder.add({.name = "x", .type = "input"}, {real(shape)});
  builder.add(op, {real(shape), truth(shape)});
  const Graph graph = std::move(builder).build();
  const OpTarget target{
      .real = draw.type, .narrow = draw.type, .training = true, .seed = draw.seed};
  const CompiledOp compiled = compile_op(graph, *graph.find_op(draw.name), target);
  EXPECT_TRUE(compiled.native);
  const Tensors inputs{x.to(draw.type)};
  Tensors outputs(2);
  OpStep step{.inputs = inputs, .outputs = outputs, .step = draw.step};
  compiled.run(step);
  return {outputs[0], outputs[1]};
}

TEST(ExecDropout, leaves_out_its_ratio_and_scales_the_rest) {
  const Tensor x = torch::rand({300, 1000}) + 1;
  for (const double ratio : {0.1, 0.5, 0.9}) {
    const Dropped found = drop(x, {.ratio = ratio});
    const double kept = found.mask.to(torch::kDouble).mean().item<double>();
    // Six deviations.
    EXPECT_NEAR(kept, 1 - ratio, 6 * std::sqrt(ratio * (1 - ratio) / 300'000));
    EXPECT_TRUE(at::allclose(found.result, x * found.mask / (1 - ratio)));
    // Neither rows nor columns nor neighbours have anything in common.
    const Tensor centred = found.mask.to(torch::kDouble) - (1 - ratio);
    const double variance = ratio * (1 - ratio);
    for (const auto& [axis, by] : {std::pair(0, 1), std::pair(1, 1), std::pair(1, 2)}) {
      const Tensor shifted = centred.roll(by, axis);
      EXPECT_LT(std::abs((centred * shifted).mean().item<double>()) / variance,
                6 / std::sqrt(300'000.0));
    }
    EXPECT_LT(centred.mean(0).abs().max().item<double>(), 7 * std::sqrt(variance / 300));
    EXPECT_LT(centred.mean(1).abs().max().item<double>(), 7 * std::sqrt(variance / 1000));
  }
  EXPECT_EQ(drop(x, {.ratio = 0}).mask.sum().item<std::int64_t>(), 300'000);
  EXPECT_EQ(drop(x, {.ratio = 1}).result.abs().max().item<float>(), 0);
}

TEST(ExecDropout, draws_by_seed_op_and_step) {
  const Tensor x = torch::ones({100, 100});
  const Tensor mask = drop(x, {}).mask;
  EXPECT_TRUE(at::equal(drop(x, {}).mask, mask));
  EXPECT_TRUE(at::equal(drop(x, {.type = torch::kDouble}).mask, mask));
  // Others agree by chance alone: 0.75 squared and 0.25 squared.
  for (const Draw& other : {Draw{.name = "other"}, Draw{.seed = 2}, Draw{.step = 1}}) {
    const Tensor same = drop(x, other).mask == mask;
    EXPECT_NEAR(same.to(torch::kDouble).mean().item<double>(), 0.625, 0.03);
  }
}

TEST(ExecDropout, a_piece_draws_what_the_whole_does) {
  const Tensor x = torch::rand({6, 5, 70});
  const Tensor whole = drop(x, {}).mask;
  for (const auto& [begin, size] :
       {std::pair(Shape{2, 0, 0}, Shape{3, 5, 70}), std::pair(Shape{0, 1, 0}, Shape{6, 3, 70}),
        std::pair(Shape{1, 2, 13}, Shape{4, 2, 40}), std::pair(Shape{5, 4, 69}, Shape{1, 1, 1})}) {
    Tensor piece = x;
    Tensor expected = whole;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto axis = static_cast<std::int64_t>(i);
      piece = piece.narrow(axis, begin[i], size[i]);
      expected = expected.narrow(axis, begin[i], size[i]);
    }
    const Dropped found = drop(piece, {.name = "dropout@3",
                                       .attributes = {{"drawn_as", std::string("dropout")},
                                                      {"region_begin", begin},
                                                      {"region_shape", Shape{6, 5, 70}}}});
    EXPECT_TRUE(at::equal(found.mask, expected));
    EXPECT_TRUE(at::allclose(found.result, piece * expected / 0.75));
  }
}

// Other devices draw by tensor operations, by a step that may be a tensor there.
TEST(ExecDropout, is_the_same_by_tensor_operations) {
  const Call piece{
      .type = "Dropout",
      .attributes = {{"region_begin", Shape{3, 0, 7}}, {"region_shape", Shape{9, 5, 40}}}};
  const Chance chance(piece, {4, 5, 21}, 0.3);
  for (const std::int64_t step : {0, 1, 1000}) {
    Stream stream{.key = stream_key(11, "dropout"), .step = step};
    const Tensor mask = chance.mask(stream, torch::kCPU);
    EXPECT_TRUE(at::equal(chance.mask_by_tensors(stream, torch::kCPU), mask));
    stream.step = -1;  // not looked at
    stream.clock = {.number = torch::zeros({}), .key = torch::zeros({2}, torch::kInt)};
    set_clock(stream.clock, step);
    EXPECT_TRUE(at::equal(chance.mask_by_tensors(stream, torch::kCPU), mask));
  }
}

TEST(ExecDropout, of_a_whole_tensor_is_the_same_by_tensor_operations) {
  for (const double ratio : {0.0, 0.3, 1.0}) {
    const Chance chance({.type = "Dropout"}, {40, 50}, ratio);
    const Stream stream{.key = stream_key(11, "dropout"), .step = 3};
    const Tensor mask = chance.mask(stream, torch::kCPU);
    EXPECT_TRUE(at::equal(chance.mask_by_tensors(stream, torch::kCPU), mask));
    EXPECT_NEAR(mask.to(torch::kDouble).mean().item<double>(), 1 - ratio, 0.05);
  }
}

TEST(ExecDropout, draws_others_in_every_step_and_op) {
  const Chance chance({.type = "Dropout"}, {4000}, 0.5);
  const auto mask = [&](const char* name, std::int64_t step) {
    return chance.mask({.key = stream_key(11, name), .step = step}, torch::kCPU);
  };
  const auto share_alike = [](const Tensor& a, const Tensor& b) {
    return a.eq(b).to(torch::kDouble).mean().item<double>();
  };
  for (const std::int64_t step : {1, 2, 500}) {
    EXPECT_NEAR(share_alike(mask("a", 0), mask("a", step)), 0.5, 0.05);
    EXPECT_NEAR(share_alike(mask("a", step), mask("b", step)), 0.5, 0.05);
    EXPECT_NEAR(share_alike(mask("a", step), mask("b", step + 1)), 0.5, 0.05);
  }
}

TEST(ExecDropout, gradients_pass_where_values_did) {
  const Tensor dy = random({4, 50});
  const Dropped forward = drop(dy, {.type = torch::kDouble});
  const Tensor found = run("DropoutGrad", {dy, forward.mask}, {4, 50}, {{"ratio", 0.25}});
  EXPECT_TRUE(same(found, forward.result));
}

}  // namespace
}  // namespace emplace::exec
