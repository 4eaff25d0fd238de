// What operators' attributes, optional inputs and opsets mean, against small results worked out by
// hand, and what of them is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "exec/overwrite.h"
#include "exec/run_op.h"

namespace emplace::exec {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kYes = 1;

std::string error_of_op(const OneOp& model) {
  try {
    run_op(model);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(ExecOperatorMeaning, bounds_are_known_by_their_positions) {
  const Tensor x = reals({-3, 0, 5});
  const Tensor low = reals({-1})[0];
  const Tensor high = reals({2})[0];
  EXPECT_TRUE(same(run("Clip", {x, low, high}, {3}), reals({-1, 0, 2})));
  EXPECT_TRUE(same(run("Clip", {x, low}, {3}), reals({-1, 0, 5})));
  EXPECT_TRUE(
      same(run("Clip", {x, high}, {3}, {{"omitted_inputs", Integers{1}}}), reals({-3, 0, 2})));
  EXPECT_TRUE(same(run("Clip", {x}, {3}, {{"max", 1.0}}), reals({-3, 0, 1})));
  // The gradient follows: dy, and all inputs.
  EXPECT_TRUE(
      same(run("ClipGrad", {reals({1, 1, 1}), x, high}, {3}, {{"omitted_inputs", Integers{1}}}),
           reals({1, 1, 0})));
  EXPECT_TRUE(same(run_op({"Clip",
                           {numbers({-3, 0, 5}), numbers({2})[0]},
                           {whole({3})},
                           {{"omitted_inputs", Integers{1}}}})[0],
                   numbers({-3, 0, 2})));
}

TEST(ExecOperatorMeaning, slices_have_steps_without_axes) {
  const Tensor x = torch::arange(20, torch::kDouble).reshape({4, 5});
  EXPECT_TRUE(same(run("Slice", {x, numbers({0, 0}), numbers({4, 5}), numbers({2, 1})}, {2, 5},
                       {{"omitted_inputs", Integers{3}}}),
                   x.slice(0, 0, 4, 2)));
}

TEST(ExecOperatorMeaning, pads_have_axes_without_a_value_and_values_in_lists) {
  const Tensor x = torch::ones({2, 3}, torch::kDouble);
  EXPECT_TRUE(same(
      run("Pad", {x, numbers({1, 2}), numbers({1})}, {2, 6}, {{"omitted_inputs", Integers{2}}}),
      at::constant_pad_nd(x, {1, 2}, 0)));
  EXPECT_TRUE(same(run("Pad", {x, numbers({0, 1, 0, 2}), reals({7})}, {2, 6}),
                   at::constant_pad_nd(x, {1, 2}, 7)));
}

// 1, 2, 3, 4 in one row, as opset 11 has it.
TEST(ExecOperatorMeaning, softmaxes_take_all_dimensions_from_the_axis_where_told) {
  const Tensor x = reals({1, 2, 3, 4}).reshape({1, 2, 2});
  const Attributes flattened{{"axis", kYes}, {"flattened", kYes}};
  const Tensor row = x.reshape({1, 4});
  EXPECT_TRUE(same(run("Softmax", {x}, {1, 2, 2}, flattened), row.softmax(1).reshape({1, 2, 2})));
  EXPECT_TRUE(
      same(run("LogSoftmax", {x}, {1, 2, 2}, flattened), row.log_softmax(1).reshape({1, 2, 2})));
  EXPECT_TRUE(
      same(run("Hardmax", {x}, {1, 2, 2}, flattened), reals({0, 0, 0, 1}).reshape({1, 2, 2})));
  // The contrib operator always does, from axis 1 on.
  EXPECT_TRUE(same(run("BiasSoftmax", {x, reals({1, 2})}, {1, 2, 2}),
                   (x + reals({1, 2})).reshape({1, 4}).softmax(1).reshape({1, 2, 2})));
}

TEST(ExecOperatorMeaning, recurrent_layers_have_their_activations_and_clip_before_them) {
  const Tensor x = reals({2}).reshape({1, 1, 1});
  const Tensor w = reals({3}).reshape({1, 1, 1});
  const Tensor r = torch::zeros({1, 1, 1}, torch::kDouble);
  const Shape y{1, 1, 1, 1};
  const auto value = [&](const Attributes& attributes) {
    return run("RNN", {x, w, r}, y, attributes).item<double>();
  };
  EXPECT_DOUBLE_EQ(value({}), std::tanh(6.0));
  EXPECT_DOUBLE_EQ(value({{"activations", "Relu"}}), 6);
  EXPECT_DOUBLE_EQ(value({{"activations", "Softsign"}}), 6.0 / 7);
  EXPECT_DOUBLE_EQ(value({{"clip", 0.5}}), std::tanh(0.5));
  EXPECT_DOUBLE_EQ(value({{"activations", "Relu"}, {"clip", 0.5}}), 0.5);
  EXPECT_THAT(error_of_op({"RNN", {x, w, r}, {real(y)}, {{"activations", "Affine"}}}),
              HasSubstr("operator 'RNN': there is no kernel for attribute activations 'Affine'"));
  // Of two directions, each its own.
  const Tensor both = run("RNN", {x, w.repeat({2, 1, 1}), r.repeat({2, 1, 1})}, {1, 2, 1, 1},
                          {{"direction", "bidirectional"}, {"activations", "Relu,Tanh"}});
  EXPECT_TRUE(same(both.flatten(), reals({6, std::tanh(6.0)})));
}

TEST(ExecOperatorMeaning, recurrent_layers_tell_states_and_cells_by_position) {
  const Tensor x = torch::zeros({1, 1, 1}, torch::kDouble);
  const Tensor w = torch::zeros({1, 4, 1}, torch::kDouble);
  const Tensor c = reals({2}).reshape({1, 1, 1});
  // All gates are a half, so half of the cell is left.
  const Tensors found =
      run_op({"LSTM",
              {x, w, w, c},
              {real({1, 1, 1, 1}), real({1, 1, 1})},
              {{"omitted_inputs", Integers{3, 4, 5}}, {"omitted_outputs", Integers{1}}}});
  EXPECT_DOUBLE_EQ(found[0].item<double>(), std::tanh(1.0) / 2);
  EXPECT_DOUBLE_EQ(found[1].item<double>(), 1);
}

TEST(ExecOperatorMeaning, resizing_goes_by_scales_where_they_are_known) {
  const Tensor x = reals({0, 1, 4, 9, 16}).reshape({1, 1, 1, 5});
  const Attributes scaled{{"mode", "linear"}, {"scales", std::vector<double>{1, 1, 1, 1.5}}};
  const auto expected = [&](bool half) {
    std::vector<double> values;
    for (int i = 0; i < 7; ++i) {
      const double place = std::clamp(half ? (i + 0.5) / 1.5 - 0.5 : i / 1.5, 0.0, 4.0);
      const auto low = static_cast<std::int64_t>(place);
      const double share = place - static_cast<double>(low);
      const auto at = [&](std::int64_t element) { return static_cast<double>(element * element); };
      values.push_back(at(low) * (1 - share) + at(std::min<std::int64_t>(low + 1, 4)) * share);
    }
    return reals(values).reshape({1, 1, 1, 7});
  };
  EXPECT_TRUE(same(run("Resize", {x}, {1, 1, 1, 7}, scaled), expected(true)));
  EXPECT_TRUE(same(run("Upsample", {x}, {1, 1, 1, 7}, scaled), expected(false)));
  // Rounded down to what it was, and still not the same places: 0, 1 / 1.1, ... down to whole ones.
  EXPECT_TRUE(
      same(run("Upsample", {x}, {1, 1, 1, 5}, {{"scales", std::vector<double>{1, 1, 1, 1.1}}}),
           reals({0, 0, 1, 4, 9}).reshape({1, 1, 1, 5})));
}

TEST(ExecOperatorMeaning, resizing_otherwise_is_refused) {
  const Tensor x = random({1, 1, 2, 2});
  const auto refused = [&](const Attributes& attributes) {
    return error_of_op({"Resize", {x}, {real({1, 1, 4, 4})}, attributes});
  };
  EXPECT_THAT(refused({{"coordinate_transformation_mode", "tf_crop_and_resize"}}),
              HasSubstr("operator 'Resize': there is no kernel for attribute "
                        "coordinate_transformation_mode 'tf_crop_and_resize'"));
  EXPECT_THAT(refused({{"mode", "cubic"}}), HasSubstr("no kernel for attribute mode 'cubic'"));
  EXPECT_THAT(refused({{"antialias", kYes}}), HasSubstr("no kernel for attribute antialias 1"));
}

TEST(ExecOperatorMeaning, attention_refuses_what_it_does_not_compute) {
  const Tensor x = random({1, 3, 8});
  const auto refused = [&](const char* type, Attributes attributes) {
    attributes.set("num_heads", std::int64_t{1});
    attributes.set("kv_num_heads", std::int64_t{1});
    return error_of_op({type, {x, x, x}, {real({1, 3, 8})}, attributes});
  };
  const auto window = [](std::int64_t size) { return Attributes{{"local_window_size", size}}; };
  EXPECT_THAT(refused("GroupQueryAttention", window(1)),
              HasSubstr("operator 'GroupQueryAttention': there is no kernel for attribute "
                        "local_window_size 1 of 3 keys"));
  EXPECT_EQ(refused("GroupQueryAttention", window(3)), "");
  EXPECT_EQ(refused("GroupQueryAttention", window(-1)), "");
  EXPECT_THAT(refused("GroupQueryAttention", {{"softcap", 2.0}}), HasSubstr("attribute softcap 2"));
  EXPECT_THAT(refused("GroupQueryAttention", {{"smooth_softmax", kYes}}),
              HasSubstr("attribute smooth_softmax"));
  EXPECT_THAT(refused("Attention", {{"softcap", 2.0}}), HasSubstr("attribute softcap 2"));
  EXPECT_THAT(refused("MultiHeadAttention", {{"mask_filter_value", -1.0}}),
              HasSubstr("attribute mask_filter_value -1"));
}

// Scores are equal, so each result is the mean of the keys that count.
TEST(ExecOperatorMeaning, packed_attention_has_masks) {
  const Tensor x = reals({1, 2, 6}).reshape({1, 3, 1});
  const Tensor w = reals({0, 0, 1}).reshape({1, 3});
  const Tensor bias = torch::zeros({3}, torch::kDouble);
  const auto mean = [&](const Tensor& mask) {
    return run("Attention", {x, w, bias, mask}, {1, 3, 1}, {{"num_heads", kYes}});
  };
  EXPECT_TRUE(same(mean(numbers({1, 0, 1}).reshape({1, 3})), torch::full({1, 3, 1}, 3.5)));
  EXPECT_TRUE(same(mean(numbers({2})), torch::full({1, 3, 1}, 1.5)));
  EXPECT_THAT(error_of_op({"Attention",
                           {x, w, bias, random({2, 1, 1, 3, 1})},
                           {real({1, 3, 1})},
                           {{"num_heads", kYes}, {"omitted_inputs", Integers{3}}}}),
              HasSubstr("no kernel for input past"));
}

TEST(ExecOperatorMeaning, infinities_are_told_apart) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = reals({-infinity, 0, infinity});
  const auto found = [&](const Attributes& attributes) {
    return run_op({"IsInf", {x}, {truth({3})}, attributes})[0].to(torch::kLong);
  };
  EXPECT_TRUE(same(found({}), numbers({1, 0, 1})));
  EXPECT_TRUE(same(found({{"detect_negative", std::int64_t{0}}}), numbers({0, 0, 1})));
  EXPECT_TRUE(same(found({{"detect_positive", std::int64_t{0}}}), numbers({1, 0, 0})));
}

TEST(ExecOperatorMeaning, integers_of_fewer_bits_wrap) {
  const auto as = [](DType dtype) { return TensorSpec{.shape = Shape{2}, .dtype = dtype}; };
  const auto cast = [&](const Tensor& x, DType dtype) {
    return run_op({"Cast", {x}, {as(dtype)}})[0];
  };
  EXPECT_TRUE(same(cast(reals({300, -1}), DType::kUInt8), numbers({44, 255})));
  EXPECT_TRUE(same(cast(numbers({300, 128}), DType::kInt8), numbers({44, -128})));
  EXPECT_TRUE(same(cast(numbers({-1, 65536}), DType::kUInt16), numbers({65535, 0})));
  EXPECT_TRUE(same(cast(numbers({40000, 1}), DType::kInt16), numbers({-25536, 1})));
  EXPECT_TRUE(same(cast(numbers({-1, 1LL << 32}), DType::kUInt32), numbers({4294967295, 0})));
  EXPECT_TRUE(same(cast(numbers({1LL << 31, 5}), DType::kInt32), numbers({-(1LL << 31), 5})));
  EXPECT_TRUE(same(run_op({"Sub", {numbers({0, 3}), numbers({1, 2})}, {as(DType::kUInt8)}})[0],
                   numbers({255, 1})));
  EXPECT_TRUE(
      same(run_op({"BitwiseNot", {numbers({5, 0})}, {as(DType::kUInt8)}})[0], numbers({250, 255})));
}

TEST(ExecOperatorMeaning, what_wraps_is_not_written_over_an_input) {
  const auto overwrites = [](DType dtype) {
    GraphBuilder builder("sum");
    const TensorSpec spec{.shape = Shape{2}, .dtype = dtype};
    builder.add({.name = "a", .type = "input"}, {spec});
    builder.add({.name = "b", .type = "Neg", .inputs = {0}}, {spec});
    builder.add({.name = "c", .type = "Add", .inputs = {0, 1}}, {spec});
    return static_cast<bool>(overwrite_kernel(std::move(builder).build(), 2, InPlace::kSums));
  };
  EXPECT_TRUE(overwrites(DType::kFloat32));
  EXPECT_TRUE(overwrites(DType::kInt64));
  EXPECT_FALSE(overwrites(DType::kUInt8));
  EXPECT_FALSE(overwrites(DType::kInt32));
}

TEST(ExecOperatorMeaning, integers_are_clipped_as_integers) {
  const Tensor x = numbers({(1LL << 24) + 1, -5, 1LL << 60});
  const TensorSpec whole{.shape = Shape{3}, .dtype = DType::kInt64};
  EXPECT_TRUE(same(run_op({"Clip", {x, numbers({0})[0], numbers({1LL << 31})[0]}, {whole}})[0],
                   numbers({(1LL << 24) + 1, 0, 1LL << 31})));
  EXPECT_TRUE(same(run_op({"Clip", {x, numbers({0})[0]}, {whole}})[0],
                   numbers({(1LL << 24) + 1, 0, 1LL << 60})));
}

TEST(ExecOperatorMeaning, sums_of_what_is_scattered_wrap_too) {
  const TensorSpec byte{.shape = Shape{2}, .dtype = DType::kUInt8};
  EXPECT_TRUE(same(run_op({"ScatterElements",
                           {numbers({200, 1}), numbers({0}), numbers({100})},
                           {byte},
                           {{"reduction", "add"}}})[0],
                   numbers({44, 1})));
}

// Of three inputs with stride 2, seven places are reached; eight are asked for.
TEST(ExecOperatorMeaning, transposed_convolutions_add_zeros_behind) {
  const Tensor x = reals({1, 2, 3}).reshape({1, 1, 3});
  const Tensor w = torch::ones({1, 1, 3}, torch::kDouble);
  EXPECT_TRUE(same(run("ConvTranspose", {x, w}, {1, 1, 8},
                       {{"strides", Integers{2}}, {"output_shape", Integers{8}}}),
                   reals({1, 1, 3, 2, 5, 3, 3, 0}).reshape({1, 1, 8})));
}

TEST(ExecOperatorMeaning, dropout_drops_in_training_alone) {
  const Tensor x = torch::ones({40, 40}, torch::kDouble);
  const Tensor ratio = reals({0.5})[0];
  const auto dropped = [&](const Tensors& inputs, bool training) {
    const Tensor y =
        run_op({"Dropout", inputs, {real({40, 40}), truth({40, 40})}, {}, training})[0];
    return !same(y, x);
  };
  EXPECT_FALSE(dropped({x, ratio}, false));
  EXPECT_TRUE(dropped({x, ratio}, true));
  EXPECT_TRUE(dropped({x, ratio, torch::ones({}, torch::kBool)}, false));
  EXPECT_FALSE(dropped({x, ratio, torch::zeros({}, torch::kBool)}, true));
}

TEST(ExecOperatorMeaning, skip_norms_know_their_biases_by_position) {
  const Tensor x = random({2, 3, 4});
  const Tensor scale = random({4});
  const Tensor bias = random({4});
  EXPECT_TRUE(same(run("SkipLayerNormalization", {x, x, scale, bias}, {2, 3, 4},
                       {{"omitted_inputs", Integers{3}}}),
                   at::layer_norm(x + x + bias, {4}, scale, {}, 1e-12)));
}

TEST(ExecOperatorMeaning, constants_may_be_no_numbers) {
  const Tensor found = run("ConstantOfShape", {numbers({2})}, {2}, {{"value", "nan"}});
  EXPECT_TRUE(found.isnan().all().item<bool>());
}

TEST(ExecOperatorMeaning, what_other_opsets_mean_is_refused) {
  const Tensor x = random({2, 3, 3});
  EXPECT_THAT(
      error_of_op(
          {"Add", {x, random({3})}, {real({2, 3, 3})}, {{"axis", kYes}, {"broadcast", kYes}}}),
      HasSubstr("operator 'Add': there is no kernel for attribute axis 1"));
  EXPECT_THAT(error_of_op({"BatchNormalization",
                           {x, random({3}), random({3}), random({3}), random({3})},
                           {real({2, 3, 3})},
                           {{"spatial", std::int64_t{0}}}}),
              HasSubstr("no kernel for attribute spatial 0"));
  EXPECT_THAT(
      error_of_op(
          {"TopK", {x, numbers({1})}, {whole({2, 3, 1})}, {{"omitted_outputs", Integers{0}}}}),
      HasSubstr("leaves out output 0 and has a later one"));
}

}  // namespace
}  // namespace emplace::exec
