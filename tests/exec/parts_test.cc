// Pieces of split ops, put together, make what the whole op makes.
#include <gtest/gtest.h>

#include "exec/run_op.h"

namespace emplace::exec {
namespace {

class ExecParts : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(7); }
};

Shape shape_of(const Tensor& x) {
  return {x.sizes().begin(), x.sizes().end()};
}

TEST_F(ExecParts, blocks_are_cut_and_joined) {
  const Tensor x = random({4, 5});
  const auto cut = [&](const Integers& begin, const Integers& size) {
    return run("PartSlice", {x}, size, {{"begin", begin}, {"size", size}});
  };
  const Tensors blocks{cut({0, 0}, {4, 2}), cut({0, 2}, {1, 3}), cut({1, 2}, {3, 3})};
  EXPECT_TRUE(same(blocks[2], x.slice(0, 1).slice(1, 2)));
  const Attributes places{
      {"begin_0", Integers{0, 0}}, {"begin_1", Integers{0, 2}}, {"begin_2", Integers{1, 2}}};
  EXPECT_TRUE(same(run("PartJoin", blocks, {4, 5}, places), x));
}

TEST_F(ExecParts, partial_results_are_combined) {
  const Tensors parts{random({3}), random({3}), random({3})};
  EXPECT_TRUE(same(run("PartSum", parts, {3}), parts[0] + parts[1] + parts[2]));
  EXPECT_TRUE(same(run("PartProd", parts, {3}), parts[0] * parts[1] * parts[2]));
  EXPECT_TRUE(same(run("PartMax", parts, {3}), at::stack(parts).amax(0)));
  EXPECT_TRUE(same(run("PartMin", parts, {3}), at::stack(parts).amin(0)));
}

TEST_F(ExecParts, batch_normalisation_in_two_halves) {
  const Tensor x = random({5, 3, 2, 2});
  const Tensor dy = random({5, 3, 2, 2});
  const Tensor scale = random({3});
  const Tensor bias = random({3});
  const Attributes epsilon{{"epsilon", 1e-3}};
  Attributes counted = epsilon;
  counted.set("count", std::int64_t{20});

  const Tensors xs{x.narrow(0, 0, 2), x.narrow(0, 2, 3)};
  const Tensors dys{dy.narrow(0, 0, 2), dy.narrow(0, 2, 3)};
  Tensors sums;
  for (const Tensor& each : xs) sums.push_back(run("BatchNormStatistics", {each}, {2, 3}, counted));
  const Tensor statistics = sums[0] + sums[1];
  sums.clear();
  Tensors ys;
  for (std::size_t i = 0; i < 2; ++i) {
    ys.push_back(run("BatchNormApply", {xs[i], scale, bias, statistics}, shape_of(xs[i]), epsilon));
    sums.push_back(run("BatchNormGradStatistics", {dys[i], xs[i], statistics}, {2, 3}, epsilon));
  }
  const Tensor gradient_sums = sums[0] + sums[1];
  Tensors dxs;
  for (std::size_t i = 0; i < 2; ++i) {
    dxs.push_back(run("BatchNormGradApply", {dys[i], xs[i], scale, statistics, gradient_sums},
                      shape_of(xs[i]), counted));
  }

  const Tensor y = run_op(
      {"BatchNormalization", {x, scale, bias, bias, bias}, {real({5, 3, 2, 2})}, epsilon, true})[0];
  EXPECT_TRUE(same(at::cat(ys), y));
  const Tensors gradients = run_op({"BatchNormalizationGrad",
                                    {dy, x, scale},
                                    {real({5, 3, 2, 2}), real({3}), real({3})},
                                    epsilon,
                                    true});
  EXPECT_TRUE(same(at::cat(dxs), gradients[0]));
  EXPECT_TRUE(same(gradient_sums[1], gradients[1]));
  EXPECT_TRUE(same(gradient_sums[0], gradients[2]));
}

TEST_F(ExecParts, parts_of_means_add_up) {
  const Tensor x = random({4, 3, 2});
  const Attributes all{{"keepdims", std::int64_t{0}}, {"mean_count", std::int64_t{24}}};
  EXPECT_TRUE(same(run("ReduceMean", {x.narrow(0, 0, 1)}, {}, all) +
                       run("ReduceMean", {x.narrow(0, 1, 3)}, {}, all),
                   x.mean()));
  const Attributes of_six{{"mean_count", std::int64_t{2}}};
  EXPECT_TRUE(same(run("GlobalAveragePool", {x.narrow(2, 0, 1)}, {4, 3, 1}, of_six) +
                       run("GlobalAveragePool", {x.narrow(2, 1, 1)}, {4, 3, 1}, of_six),
                   x.mean(2, true)));
  EXPECT_TRUE(same(run("GlobalAveragePoolGrad", {random({4, 3, 1}).fill_(6)}, {4, 3, 1}, of_six),
                   torch::full({4, 3, 1}, 3.0, torch::kDouble)));
}

TEST_F(ExecParts, pieces_of_tables_know_their_rows) {
  const Tensor table = random({7, 3});
  const Tensor ids = numbers({6, 0, 3, 3, 2, 5});
  const Tensor dy = random({6, 3});
  const auto from = [](std::int64_t row) { return Attributes{{"row_offset", row}}; };
  EXPECT_TRUE(same(run("Gather", {table.narrow(0, 0, 3), ids}, {6, 3}, from(0)) +
                       run("Gather", {table.narrow(0, 3, 4), ids}, {6, 3}, from(3)),
                   run("Gather", {table, ids}, {6, 3})));
  EXPECT_TRUE(same(at::cat({run("GatherGrad", {dy, ids}, {3, 3}, from(0)),
                            run("GatherGrad", {dy, ids}, {4, 3}, from(3))}),
                   run("GatherGrad", {dy, ids}, {7, 3})));
  const auto add = [](std::int64_t row) {
    return Attributes{{"row_offset", row}, {"reduction", "add"}};
  };
  const Tensor rows = ids.unsqueeze(1);
  const Tensor written = run("ScatterND", {table, rows, dy}, {7, 3}, {{"reduction", "add"}});
  EXPECT_TRUE(same(at::cat({run("ScatterND", {table.narrow(0, 0, 3), rows, dy}, {3, 3}, add(0)),
                            run("ScatterND", {table.narrow(0, 3, 4), rows, dy}, {4, 3}, add(3))}),
                   written));
}

// Rows 2 to 5 of an output of a window of 3 with stride 2 and padding 1 see rows 3 to 11.
TEST_F(ExecParts, windows_see_pieces_of_images) {
  const Tensor x = random({1, 2, 14, 5});
  const Tensor w = random({3, 2, 3, 3});
  const auto window = [](std::int64_t top, std::int64_t bottom) {
    return Attributes{{"kernel_shape", Integers{3, 3}},
                      {"strides", Integers{2, 2}},
                      {"pads", Integers{top, 1, bottom, 1}}};
  };
  for (const char* type : {"Conv", "MaxPool", "AveragePool"}) {
    const bool conv = std::string_view(type) == "Conv";
    const auto of = [&](const Tensor& image, std::int64_t rows, const Attributes& attributes) {
      return run(type, conv ? Tensors{image, w} : Tensors{image}, {1, conv ? 3 : 2, rows, 3},
                 attributes);
    };
    const Tensor all = of(x, 7, window(1, 1));
    // What it needs, a row too much in front, and at both ends; the first and the last piece.
    EXPECT_TRUE(same(of(x.narrow(2, 3, 7), 3, window(0, 0)), all.narrow(2, 2, 3))) << type;
    EXPECT_TRUE(same(of(x.narrow(2, 2, 8), 3, window(-1, 0)), all.narrow(2, 2, 3))) << type;
    EXPECT_TRUE(same(of(x.narrow(2, 2, 9), 3, window(-1, 0)), all.narrow(2, 2, 3))) << type;
    EXPECT_TRUE(same(of(x.narrow(2, 0, 4), 2, window(1, 0)), all.narrow(2, 0, 2))) << type;
    EXPECT_TRUE(same(of(x.narrow(2, 9, 5), 2, window(0, 1)), all.narrow(2, 5, 2))) << type;
  }
}

// Three pieces of the output's rows, and what they see of the input.
TEST_F(ExecParts, gradients_of_pieces_of_images_add_up) {
  const Tensor x = random({1, 2, 14, 5}).relu();  // with equal elements
  const Tensor w = random({3, 2, 3, 3});
  struct Piece {
    std::int64_t row, rows;        // of the output
    std::int64_t seen, seen_rows;  // of the input
    std::int64_t top, bottom;      // padding
  };
  const std::vector<Piece> pieces{{0, 2, 0, 4, 1, 0}, {2, 3, 2, 9, -1, 0}, {5, 2, 9, 5, 0, 1}};
  for (const char* type : {"ConvInputGrad", "ConvWeightGrad", "MaxPoolGrad", "AveragePoolGrad"}) {
    const std::string_view name = type;
    const bool weights = name == "ConvWeightGrad";
    const Tensor all_dy = random({1, name.starts_with("Conv") ? 3 : 2, 7, 3});
    const auto gradient = [&](const Tensor& dy, const Tensor& seen, std::int64_t top,
                              std::int64_t bottom) {
      const Attributes attributes{{"kernel_shape", Integers{3, 3}},
                                  {"strides", Integers{2, 2}},
                                  {"pads", Integers{top, 1, bottom, 1}}};
      Tensors inputs{dy};
      if (name == "ConvInputGrad") inputs.push_back(w);
      if (weights) inputs.push_back(seen);
      if (name == "MaxPoolGrad") {
        inputs.push_back(seen);
        inputs.push_back(run("MaxPool", {seen}, shape_of(dy), attributes));
      }
      return run(type, inputs, weights ? shape_of(w) : shape_of(seen), attributes);
    };
    Tensor sum = torch::zeros_like(weights ? w : x);
    for (const Piece& piece : pieces) {
      const Tensor part =
          gradient(all_dy.narrow(2, piece.row, piece.rows),
                   x.narrow(2, piece.seen, piece.seen_rows), piece.top, piece.bottom);
      (weights ? sum : sum.narrow(2, piece.seen, piece.seen_rows)).add_(part);
    }
    EXPECT_TRUE(same(sum, gradient(all_dy, x, 1, 1))) << type;
  }
}

TEST_F(ExecParts, pieces_of_losses_add_up) {
  const Tensor scores = random({6, 4});
  const Tensor labels = numbers({0, 3, 1, 1, 2, 0});
  const Tensor dy = torch::ones({}, torch::kDouble);
  const Attributes of_six{{"mean_count", std::int64_t{6}}};
  Tensor sum = torch::zeros({}, torch::kDouble);
  Tensors gradients;
  for (const std::int64_t row : {0, 3}) {
    const Tensor own = scores.narrow(0, row, 3);
    const Tensor own_labels = labels.narrow(0, row, 3);
    const Tensors both =
        run_op({"SoftmaxCrossEntropyLoss", {own, own_labels}, {real({}), real({3, 4})}, of_six});
    sum = sum + both[0];
    gradients.push_back(
        run("SoftmaxCrossEntropyLossGrad", {dy, own_labels, both[1]}, {3, 4}, of_six));
  }
  EXPECT_TRUE(same(sum, run("SoftmaxCrossEntropyLoss", {scores, labels}, {})));
  EXPECT_TRUE(
      same(at::cat(gradients), run("SoftmaxCrossEntropyLossGrad", {dy, scores, labels}, {6, 4})));
}

TEST_F(ExecParts, pieces_of_a_dropout_drop_the_same) {
  const Tensor x = random({6, 10});
  const Tensor ratio = reals({0.4})[0];
  Attributes attributes{{"training_mode", std::int64_t{1}}};
  const Tensors all = run_op({"Dropout", {x, ratio}, {real({6, 10}), truth({6, 10})}, attributes});
  attributes.set("region_begin", Integers{2, 4});
  attributes.set("region_shape", Integers{6, 10});
  const Tensors piece = run_op({"Dropout",
                                {x.narrow(0, 2, 3).narrow(1, 4, 5), ratio},
                                {real({3, 5}), truth({3, 5})},
                                attributes});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(same(piece[i].to(torch::kDouble),
                     all[i].narrow(0, 2, 3).narrow(1, 4, 5).to(torch::kDouble)));
  }
  const double kept = all[1].to(torch::kDouble).mean().item<double>();
  EXPECT_GT(kept, 0.4);
  EXPECT_LT(kept, 0.8);
  EXPECT_TRUE(same(all[0], x * all[1].to(torch::kDouble) / 0.6));
}

}  // namespace
}  // namespace emplace::exec
