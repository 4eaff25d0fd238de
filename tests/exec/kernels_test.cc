// Operators against libtorch's own, and against small results worked out by hand.
#include <gtest/gtest.h>

#include "exec/run_op.h"

namespace emplace::exec {
namespace {

class ExecKernels : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(7); }
};

TEST_F(ExecKernels, convolutions) {
  const Tensor x = random({2, 4, 7, 6});
  const Tensor w = random({6, 2, 3, 3});
  const Tensor b = random({6});
  const Attributes attributes{{"pads", Integers{1, 2, 1, 2}},
                              {"strides", Integers{2, 1}},
                              {"dilations", Integers{1, 2}},
                              {"group", std::int64_t{2}}};
  EXPECT_TRUE(same(run("Conv", {x, w, b}, {2, 6, 4, 6}, attributes),
                   at::conv2d(x, w, b, {2, 1}, {1, 2}, {1, 2}, 2)));
  const Attributes lower{
      {"auto_pad", "SAME_LOWER"}, {"strides", Integers{2, 2}}, {"group", std::int64_t{2}}};
  EXPECT_TRUE(same(run("Conv", {x, w}, {2, 6, 4, 3}, lower),
                   at::convolution(at::constant_pad_nd(x, {1, 0, 1, 1}), w, {}, {2, 2}, {0, 0},
                                   {1, 1}, false, {0, 0}, 2)));
}

TEST_F(ExecKernels, transposed_convolutions) {
  const Tensor x = random({2, 4, 5, 6});
  const Tensor w = random({4, 3, 3, 3});
  const Tensor b = random({3});
  const Attributes attributes{{"pads", Integers{1, 1, 1, 1}},
                              {"strides", Integers{2, 2}},
                              {"output_padding", Integers{1, 1}}};
  EXPECT_TRUE(same(run("ConvTranspose", {x, w, b}, {2, 3, 10, 12}, attributes),
                   at::conv_transpose2d(x, w, b, 2, 1, 1)));
}

TEST_F(ExecKernels, fused_attention) {
  const Tensor q = random({2, 4, 5, 3});
  const Tensor k = random({2, 2, 5, 3});
  const Tensor v = random({2, 2, 5, 6});
  const Tensor keys = k.repeat_interleave(2, 1);
  const Tensor never =
      torch::full({5, 5}, -std::numeric_limits<double>::infinity(), torch::kDouble);
  const Tensor scores = q.matmul(keys.transpose(2, 3)) / std::sqrt(3.0);
  const auto expected = [&](const Tensor& seen) {
    return seen.softmax(-1).matmul(v.repeat_interleave(2, 1));
  };
  const auto both = [&](const Tensors& inputs, const Attributes& attributes) {
    return run_op({"FlashAttention", inputs, {real({2, 4, 5, 6}), real({2, 4, 5})}, attributes});
  };
  const Tensors plain = both({q, k, v}, {});
  EXPECT_TRUE(same(plain[0], expected(scores)));
  EXPECT_TRUE(same(plain[1], scores.logsumexp(-1)));
  const Attributes causal{{"is_causal", std::int64_t{1}}};
  EXPECT_TRUE(same(both({q, k, v}, causal)[0], expected(scores + never.triu(1))));
  const Attributes window{{"is_causal", std::int64_t{1}}, {"window", std::int64_t{2}}};
  EXPECT_TRUE(same(both({q, k, v}, window)[0], expected(scores + never.triu(1) + never.tril(-2))));
  // A sink is a key without a value.
  const Tensor sinks = random({4});
  const Tensor column = sinks.reshape({1, 4, 1, 1}).expand({2, 4, 5, 1});
  const Tensor weights = at::cat({scores, column}, -1).softmax(-1).narrow(-1, 0, 5);
  EXPECT_TRUE(same(both({q, k, v, sinks}, {})[0], weights.matmul(v.repeat_interleave(2, 1))));
}

// Queries are as many as new keys, fewer and more: the first sees what was kept and the first new
// key, by ONNX's definition of is_causal. Scores are equal, so each result is the mean of what is
// seen.
TEST_F(ExecKernels, causal_attention_begins_after_what_was_kept) {
  constexpr std::int64_t kQueries = 4;
  for (const std::int64_t kept : {0, 2}) {
    for (const std::int64_t keys : {3, 4, 7}) {
      const Tensor q = torch::zeros({1, 1, kQueries, 2}, torch::kDouble);
      const Tensor k = random({1, 1, keys, 2});
      const Tensor v = torch::arange(kept, kept + keys, torch::kDouble).reshape({1, 1, keys, 1});
      Attributes attributes{{"is_causal", std::int64_t{1}}};
      Tensors inputs{q, k, v};
      if (kept > 0) {
        attributes.set("omitted_inputs", Integers{3});
        inputs.push_back(random({1, 1, kept, 2}));
        inputs.push_back(torch::arange(kept, torch::kDouble).reshape({1, 1, kept, 1}));
      }
      const Tensor found =
          run_op({"Attention", inputs, {real({1, 1, kQueries, 1})}, attributes})[0].flatten();
      for (std::int64_t query = 0; query < kQueries; ++query) {
        const std::int64_t last = std::min(kept + query, kept + keys - 1);
        EXPECT_NEAR(found[query].item<double>(), static_cast<double>(last) / 2, 1e-12)
            << "query " << query << ", " << kept << " kept, " << keys << " keys";
      }
    }
  }
}

TEST_F(ExecKernels, max_pools) {
  const Tensor x = random({2, 3, 7, 6});
  const Attributes attributes{{"kernel_shape", Integers{3, 3}},
                              {"strides", Integers{2, 2}},
                              {"pads", Integers{1, 1, 1, 1}}};
  const Tensors both =
      run_op({"MaxPool", {x}, {real({2, 3, 4, 3}), whole({2, 3, 4, 3})}, attributes});
  EXPECT_TRUE(same(both[0], at::max_pool2d(x, 3, 2, 1)));
  EXPECT_TRUE(same(x.flatten().index_select(0, both[1].flatten()), both[0].flatten()));
}

TEST_F(ExecKernels, average_pools) {
  const Tensor x = random({2, 3, 7, 6});
  for (const bool counted : {false, true}) {
    Attributes attributes{{"kernel_shape", Integers{3, 3}},
                          {"strides", Integers{2, 2}},
                          {"pads", Integers{1, 1, 1, 1}},
                          {"count_include_pad", std::int64_t{counted}}};
    EXPECT_TRUE(same(run("AveragePool", {x}, {2, 3, 4, 3}, attributes),
                     at::avg_pool2d(x, 3, 2, 1, false, counted)));
    attributes.set("ceil_mode", std::int64_t{1});
    EXPECT_TRUE(same(run("AveragePool", {x}, {2, 3, 4, 4}, attributes),
                     at::avg_pool2d(x, 3, 2, 1, true, counted)));
  }
}

TEST_F(ExecKernels, batch_normalisation) {
  const Tensor x = random({3, 4, 2, 2});
  const Tensor scale = random({4});
  const Tensor bias = random({4});
  const Tensor mean = random({4});
  const Tensor variance = random({4}) + 2;
  for (const bool training : {false, true}) {
    const Tensor found = run_op({"BatchNormalization",
                                 {x, scale, bias, mean, variance},
                                 {real({3, 4, 2, 2})},
                                 {{"epsilon", 1e-3}},
                                 training})[0];
    EXPECT_TRUE(same(found, at::batch_norm(x, scale, bias, mean.clone(), variance.clone(), training,
                                           0.1, 1e-3, false)));
  }
}

TEST_F(ExecKernels, running_statistics_are_outputs_where_the_op_has_them) {
  const Tensor x = random({3, 4, 2, 2});
  const Tensor mean = random({4});
  const Tensor variance = random({4}) + 2;
  const Tensors inputs{x, random({4}), random({4}), mean, variance};
  const Tensors found = run_op({"BatchNormalization",
                                inputs,
                                {real({3, 4, 2, 2}), real({4}), real({4})},
                                {{"training_mode", std::int64_t{1}}, {"momentum", 0.75}}});
  EXPECT_TRUE(same(found[1], mean * 0.75 + x.mean({0, 2, 3}) * 0.25));
  EXPECT_TRUE(same(found[2], variance * 0.75 + x.var({0, 2, 3}, false) * 0.25));
}

TEST_F(ExecKernels, other_normalisations) {
  const Tensor x = random({3, 4, 5});
  const Tensor scale = random({4});
  const Tensor bias = random({4});
  EXPECT_TRUE(same(run("LayerNormalization", {x, random({5}).fill_(2)}, {3, 4, 5}),
                   at::layer_norm(x, {5}) * 2));
  EXPECT_TRUE(same(run("InstanceNormalization", {x, scale, bias}, {3, 4, 5}),
                   at::instance_norm(x, scale, bias, {}, {}, true, 0, 1e-5, false)));
  EXPECT_TRUE(same(
      run("GroupNormalization", {x, scale, bias}, {3, 4, 5}, {{"num_groups", std::int64_t{2}}}),
      at::group_norm(x, 2, scale, bias)));
  const Tensor ones = torch::ones({1, 3, 1, 1}, torch::kDouble);
  const Tensor local =
      run("LRN", {ones}, {1, 3, 1, 1}, {{"size", std::int64_t{2}}, {"alpha", 2.0}, {"beta", 1.0}});
  EXPECT_TRUE(same(local.flatten(), reals({1.0 / 3, 1.0 / 3, 1.0 / 2})));
}

TEST_F(ExecKernels, cross_entropy) {
  const Tensor scores = random({5, 4});
  const Tensor labels = numbers({0, 3, 1, 1, 2});
  const Tensor weights = random({4}) + 2;
  EXPECT_TRUE(same(run("SoftmaxCrossEntropyLoss", {scores, labels, weights}, {},
                       {{"ignore_index", std::int64_t{1}}}),
                   at::cross_entropy_loss(scores, labels, weights, at::Reduction::Mean, 1)));
  EXPECT_TRUE(same(run("NegativeLogLikelihoodLoss", {scores, labels}, {5}, {{"reduction", "none"}}),
                   at::nll_loss(scores, labels, {}, at::Reduction::None)));
}

// Gates of libtorch in ONNX's order.
Tensor reordered(const Tensor& x, const std::vector<std::int64_t>& order) {
  const auto gates = x.chunk(static_cast<std::int64_t>(order.size()), 0);
  Tensors parts;
  for (const std::int64_t gate : order) parts.push_back(gates[static_cast<std::size_t>(gate)]);
  return at::cat(parts).unsqueeze(0);
}

TEST_F(ExecKernels, recurrent_layers) {
  const Tensor x = random({3, 2, 5});
  const Tensor h = random({1, 2, 4});
  const Tensor c = random({1, 2, 4});
  {
    const Tensors weights{random({16, 5}), random({16, 4}), random({16}), random({16})};
    const std::vector<std::int64_t> order{0, 3, 1, 2};  // i f g o to i o f g
    Tensors inputs{x};
    for (std::size_t i = 0; i < 2; ++i) inputs.push_back(reordered(weights[i], order));
    inputs.push_back(at::cat({reordered(weights[2], order), reordered(weights[3], order)}, 1));
    inputs.insert(inputs.end(), {h, c});
    const Tensors found =
        run_op({"LSTM", inputs, {real({3, 1, 2, 4}), real({1, 2, 4}), real({1, 2, 4})}});
    const auto [y, last, cell] = at::lstm(x, {h, c}, weights, true, 1, 0, false, false, false);
    EXPECT_TRUE(same(found[0].squeeze(1), y));
    EXPECT_TRUE(same(found[1], last));
    EXPECT_TRUE(same(found[2], cell));
  }
  const Tensors weights{random({12, 5}), random({12, 4}), random({12}), random({12})};
  const std::vector<std::int64_t> order{1, 0, 2};  // r z n to z r n
  Tensors inputs{x};
  for (std::size_t i = 0; i < 2; ++i) inputs.push_back(reordered(weights[i], order));
  inputs.push_back(at::cat({reordered(weights[2], order), reordered(weights[3], order)}, 1));
  inputs.push_back(h);
  const Tensors found =
      run_op({"GRU", inputs, {real({3, 1, 2, 4})}, {{"linear_before_reset", std::int64_t{1}}}});
  const auto [y, last] = at::gru(x, h, weights, true, 1, 0, false, false, false);
  EXPECT_TRUE(same(found[0].squeeze(1), y));
}

TEST_F(ExecKernels, resizing) {
  const Tensor x = random({2, 3, 4, 4});
  EXPECT_TRUE(same(run("Resize", {x}, {2, 3, 8, 8}), at::upsample_nearest2d(x, {8, 8})));
  EXPECT_TRUE(same(run("Resize", {x}, {2, 3, 7, 10}, {{"mode", "linear"}}),
                   at::upsample_bilinear2d(x, {7, 10}, false)));
  EXPECT_TRUE(same(run("Resize", {x}, {2, 3, 7, 10},
                       {{"mode", "linear"}, {"coordinate_transformation_mode", "align_corners"}}),
                   at::upsample_bilinear2d(x, {7, 10}, true)));
  EXPECT_TRUE(same(run("Upsample", {x}, {2, 3, 8, 12}), at::upsample_nearest2d(x, {8, 12})));
}

TEST_F(ExecKernels, space_and_depth) {
  const Tensor x = random({2, 8, 3, 3});
  const Attributes crd{{"blocksize", std::int64_t{2}}, {"mode", "CRD"}};
  EXPECT_TRUE(same(run("DepthToSpace", {x}, {2, 2, 6, 6}, crd), at::pixel_shuffle(x, 2)));
  const Attributes block{{"blocksize", std::int64_t{2}}};
  const Tensor space = run("DepthToSpace", {x}, {2, 2, 6, 6}, block);
  EXPECT_TRUE(same(run("SpaceToDepth", {space}, {2, 8, 3, 3}, block), x));
}

TEST_F(ExecKernels, cutting_and_padding) {
  const Tensor x = random({2, 3, 6});
  EXPECT_TRUE(same(
      run("Slice", {x, numbers({-1}), numbers({-100}), numbers({2}), numbers({-2})}, {2, 3, 3}),
      x.flip(2).slice(2, 0, 6, 2)));
  EXPECT_TRUE(
      same(run("Slice", {x, numbers({1, 1}), numbers({100, 2}), numbers({2, 1})}, {2, 1, 5}),
           x.slice(2, 1, 6).slice(1, 1, 2)));
  EXPECT_TRUE(same(run("Pad", {x, numbers({0, 0, 2, 0, 0, 3})}, {2, 3, 11}, {{"mode", "reflect"}}),
                   at::reflection_pad1d(x, {2, 3})));
  EXPECT_TRUE(same(run("Pad", {x, numbers({0, 0, 2, 0, 0, 3})}, {2, 3, 11}, {{"mode", "edge"}}),
                   at::replication_pad1d(x, {2, 3})));
  EXPECT_TRUE(same(run("Pad", {x, numbers({1, 2}), reals({3.0})[0], numbers({-1})}, {2, 3, 9}),
                   at::constant_pad_nd(x, {1, 2}, 3)));
}

TEST_F(ExecKernels, picking_and_placing) {
  const Tensor x = torch::arange(6, torch::kDouble).reshape({2, 3});
  EXPECT_TRUE(same(run("Gather", {x, numbers({-1, 0})}, {2, 2}, {{"axis", std::int64_t{1}}}),
                   reals({2, 0, 5, 3}).reshape({2, 2})));
  EXPECT_TRUE(
      same(run("GatherND", {x, numbers({0, 2, 1, 0}).reshape({2, 2})}, {2}), reals({2, 3})));
  EXPECT_TRUE(same(
      run("ScatterND", {x, numbers({1}).reshape({1, 1}), reals({7, 8, 9}).reshape({1, 3})}, {2, 3}),
      reals({0, 1, 2, 7, 8, 9}).reshape({2, 3})));
  EXPECT_TRUE(same(
      run("ScatterElements", {x, numbers({2, 0}).reshape({2, 1}), reals({7, 8}).reshape({2, 1})},
          {2, 3}, {{"axis", std::int64_t{1}}, {"reduction", "add"}}),
      reals({0, 1, 9, 11, 4, 5}).reshape({2, 3})));
  const Tensors top =
      run_op({"TopK", {reals({1, 3, 3, 2}), numbers({3})}, {real({3}), whole({3})}});
  EXPECT_TRUE(same(top[1], numbers({1, 2, 3})));
  EXPECT_TRUE(same(run_op({"ArgMax",
                           {reals({1, 3, 3})},
                           {whole({1})},
                           {{"select_last_index", std::int64_t{1}}}})[0],
                   numbers({2})));
  EXPECT_TRUE(same(run("OneHot", {numbers({-1, 0}), numbers({3}), reals({5, 7})}, {2, 3}),
                   reals({5, 5, 7, 7, 5, 5}).reshape({2, 3})));
}

TEST_F(ExecKernels, arithmetic) {
  const Tensor x = random({3, 4});
  EXPECT_TRUE(same(run("Gelu", {x}, {3, 4}), at::gelu(x)));
  EXPECT_TRUE(same(run("Gelu", {x}, {3, 4}, {{"approximate", "tanh"}}), at::gelu(x, "tanh")));
  EXPECT_TRUE(same(run("HardSwish", {x}, {3, 4}), at::hardswish(x)));
  EXPECT_TRUE(
      same(run_op({"Div", {numbers({7, -7}), numbers({2})}, {whole({2})}})[0], numbers({3, -3})));
  EXPECT_TRUE(
      same(run_op({"Mod", {numbers({7, -7}), numbers({4})}, {whole({2})}})[0], numbers({3, 1})));
  EXPECT_TRUE(same(run("CumSum", {reals({1, 2, 3}), numbers({0})[0]}, {3},
                       {{"exclusive", std::int64_t{1}}, {"reverse", std::int64_t{1}}}),
                   reals({5, 3, 0})));
  EXPECT_TRUE(same(run_op({"Cast", {reals({1.9, -1.9})}, {whole({2})}})[0], numbers({1, -1})));
}

TEST_F(ExecKernels, errors_name_the_op_and_its_operator) {
  const auto error_of = [](const OneOp& model) -> std::string {
    try {
      run_op(model);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(error_of({"Frobnicate", {random({2})}, {real({2})}}),
            "op 'op': operator 'Frobnicate': there is no kernel for this operator; expected one of "
            "ONNX's: graphs captured elsewhere can only be simulated");
  EXPECT_EQ(error_of({"Relu", {random({2})}, {real({3})}}),
            "op 'op': operator 'Relu': made a tensor of [2], expected [3]");
  EXPECT_NE(error_of({"MatMul", {random({2, 3}), random({2, 3})}, {real({2, 3})}})
                .find("op 'op': operator 'MatMul': libtorch cannot compute it"),
            std::string::npos);
}

}  // namespace
}  // namespace emplace::exec
