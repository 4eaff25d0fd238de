// Models in 16 bits: what is cast, what is not, and what training takes.
#include "graph/precision.h"

#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "graph/training.h"

#include "zoo/attention_models.h"
#include "zoo/layers.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

using ::testing::HasSubstr;

DType type_of(const Graph& graph, const std::string& op, std::size_t output = 0) {
  return graph.dtype(graph.outputs(graph.find_op(op).value())[output]);
}

Graph small_forward() {
  Net net("small");
  const Value x = net.input("x", {4, 8});
  const Value labels = net.input("labels", {4}, DType::kInt64);
  const Value h = scale(net, linear(net, "first", x, 16), 0.5);
  const Value y = linear(net, "second", layer_norm(net, "norm", add(net, h, h)), 5);
  classification_loss(net, y, labels);
  return std::move(net).build();
}

// Weights, gradients, masters and moments of a step.
struct Held {
  double weights = 0, gradients = 0, masters = 0, moments = 0;
};

Held held_by(const Graph& step) {
  Held held;
  for (OpId op = 0; op < step.num_ops(); ++op) {
    if (step.phase(op) != Phase::kUpdate) continue;
    if (step.is_source(op)) {
      const auto bytes = static_cast<double>(step.bytes(step.outputs(op)[0]));
      (step.op_name(op).find("/master") != std::string_view::npos ? held.masters : held.moments) +=
          bytes;
      continue;
    }
    held.weights += static_cast<double>(step.bytes(step.inputs(op)[0]));
    held.gradients += static_cast<double>(step.bytes(step.inputs(op)[1]));
  }
  return held;
}

// By hand: 6,738,415,616 parameters, of which 266,240 are scales of norms, which stay in float32
// and need no master. 2 + 2 + 4 + 8 bytes each, or 4 + 4 + 8: 107.8 GB, 100.4 GiB.
TEST(Precision, training_a_7b_model_with_adam_holds_16_bytes_a_parameter) {
  constexpr double kParameters = 6'738'415'616;
  constexpr double kScales = 65 * 4096;
  for (const char* dtype : {"float16", "bfloat16"}) {
    const Held held = held_by(build(llama_models(), "llama-7b", {{"dtype", dtype}}));
    EXPECT_EQ(held.weights, 2 * (kParameters - kScales) + 4 * kScales);
    EXPECT_EQ(held.gradients, held.weights);
    EXPECT_EQ(held.masters, 4 * (kParameters - kScales));
    EXPECT_EQ(held.moments, 8 * kParameters);
    const double all = held.weights + held.gradients + held.masters + held.moments;
    EXPECT_EQ(all, 16 * kParameters);
    EXPECT_NEAR(all / (1 << 30), 100.4, 0.05);
  }
}

TEST(Precision, products_are_narrow_and_norms_and_losses_are_wide) {
  const Graph graph = with_precision(small_forward(), DType::kBFloat16, true);
  EXPECT_EQ(type_of(graph, "first.weight"), DType::kBFloat16);
  EXPECT_EQ(type_of(graph, "first.bias"), DType::kBFloat16);
  EXPECT_EQ(type_of(graph, "first.Gemm"), DType::kBFloat16);
  EXPECT_EQ(type_of(graph, "Mul"), DType::kBFloat16) << "a number does not make it wider";
  EXPECT_EQ(type_of(graph, "Add/to_float32"), DType::kFloat32);
  EXPECT_EQ(type_of(graph, "norm.weight"), DType::kFloat32);
  EXPECT_EQ(type_of(graph, "norm.LayerNormalization"), DType::kFloat32);
  EXPECT_EQ(type_of(graph, "norm.LayerNormalization/to_bfloat16"), DType::kBFloat16);
  EXPECT_EQ(type_of(graph, "second.Gemm"), DType::kBFloat16);
  EXPECT_EQ(type_of(graph, "loss.SoftmaxCrossEntropyLoss"), DType::kFloat32);
  EXPECT_EQ(type_of(graph, "labels"), DType::kInt64);
}

// exp(logit_scale) * x: what autocast does with a tensor of no dimension.
TEST(Precision, a_computed_number_does_not_make_what_it_meets_wider) {
  const TensorSpec number{.shape = {}, .dtype = DType::kFloat32};
  const TensorSpec matrix{.shape = {4, 8}, .dtype = DType::kFloat32};
  GraphBuilder builder("clip");
  const auto scale = builder.add({.name = "logit_scale", .type = "parameter"}, {number});
  const auto x = builder.add({.name = "x", .type = "input"}, {matrix});
  const auto exp = builder.add({.name = "exp", .type = "Exp", .inputs = scale}, {number});
  builder.add({.name = "square", .type = "Mul", .inputs = {exp[0], exp[0]}}, {number});
  builder.add({.name = "y", .type = "Mul", .inputs = {exp[0], x[0]}}, {matrix});
  const Graph graph = with_precision(std::move(builder).build(), DType::kBFloat16, true);
  EXPECT_EQ(type_of(graph, "exp"), DType::kFloat32);
  EXPECT_EQ(type_of(graph, "y"), DType::kBFloat16);
  EXPECT_EQ(type_of(graph, "square"), DType::kFloat32) << "there is nothing else";
}

TEST(Precision, a_tensor_is_cast_once_for_all_that_read_it) {
  Net net("shared");
  const Value x = layer_norm(net, "norm", net.input("x", {4, 8}));
  add(net, linear(net, "a", x, 8), linear(net, "b", x, 8));
  const Graph graph = with_precision(std::move(net).build(), DType::kFloat16, true);
  std::size_t casts = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) casts += graph.type(op) == "Cast" ? 1 : 0;
  EXPECT_EQ(casts, 1U) << "of what the norm makes";
}

TEST(Precision, batch_norms_read_narrow_images_and_wide_statistics) {
  const Graph graph = with_precision(build_forward(resnet_models(), "resnet-50", {{"batch", "2"}}),
                                     DType::kFloat16, true);
  std::set<std::string> types;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.type(op) != "BatchNormalization") continue;
    EXPECT_EQ(graph.dtype(graph.inputs(op)[0]), DType::kFloat16);
    EXPECT_EQ(graph.dtype(graph.inputs(op)[1]), DType::kFloat32);
    EXPECT_EQ(graph.dtype(graph.inputs(op)[3]), DType::kFloat32);
    EXPECT_EQ(graph.dtype(graph.outputs(op)[0]), DType::kFloat16);
  }
}

TEST(Precision, inference_is_narrow_throughout) {
  const Graph wide = small_forward();
  const Graph graph = with_precision(wide, DType::kBFloat16, false);
  EXPECT_EQ(other_float(graph, DType::kBFloat16), std::nullopt);
  EXPECT_EQ(graph.num_ops(), wide.num_ops());
  const OpId gemm = graph.find_op("first.Gemm").value();
  EXPECT_EQ(graph.flops(gemm), wide.flops(gemm));
  EXPECT_EQ(*graph.bytes_moved(gemm) * 2, *wide.bytes_moved(gemm));
}

TEST(Precision, what_was_narrow_can_be_made_wide) {
  const Graph narrow = build_forward(llama_models(), "llama-7b", {{"layers", "1"}});
  EXPECT_EQ(other_float(with_precision(narrow, DType::kFloat32, true), DType::kFloat32),
            std::nullopt);
}

TEST(Precision, small_steps_are_added_to_a_master) {
  const Graph step = training_step(with_precision(small_forward(), DType::kFloat16, true));
  const OpId update = step.find_op("first.weight/update").value();
  const OpId master = step.find_op("first.weight/master").value();
  EXPECT_EQ(step.inputs(update)[2], step.outputs(master)[0]);
  EXPECT_EQ(type_of(step, "first.weight/master"), DType::kFloat32);
  EXPECT_FALSE(step.find_op("norm.weight/master").has_value());
  // Reads the gradient and the master, writes the master and the weight.
  EXPECT_EQ(step.bytes_moved(update), 16 * 8 * (2 + 4 + 4 + 2));
}

TEST(Precision, times_of_another_precision_are_forgotten) {
  GraphBuilder builder("timed");
  const auto x =
      builder.add({.name = "x", .type = "input"}, {{.shape = {2, 2}, .dtype = DType::kFloat32}});
  builder.add({.name = "y", .type = "Relu", .inputs = x, .time_us = {{"h200", Decimal{3, 0}}}},
              {{.shape = {2, 2}, .dtype = DType::kFloat32}});
  const Graph graph = with_precision(std::move(builder).build(), DType::kFloat16, false);
  EXPECT_TRUE(graph.measured_times(graph.find_op("y").value()).empty());
}

TEST(Precision, bytes_that_a_file_says_are_moved_are_scaled) {
  const TensorSpec matrix{.shape = {4, 4}, .dtype = DType::kFloat32};
  GraphBuilder builder("moved");
  const auto x = builder.add({.name = "x", .type = "input"}, {matrix});
  builder.add({.name = "tiled", .type = "Relu", .inputs = x, .bytes_moved = 1000}, {matrix});
  builder.add({.name = "plain", .type = "Relu", .inputs = x, .bytes_moved = 128}, {matrix});
  builder.add({.name = "custom", .type = "mine", .inputs = x, .bytes_moved = 300}, {matrix});
  const Graph graph = with_precision(std::move(builder).build(), DType::kFloat16, false);
  const auto moved = [&](const char* op) { return graph.bytes_moved(graph.find_op(op).value()); };
  EXPECT_EQ(moved("tiled"), 500);
  EXPECT_EQ(moved("plain"), 64);
  EXPECT_EQ(moved("custom"), 150);
}

// Not among what PyTorch documents to be cast: they compute in what they are given. A local
// response norm ends in a power, which is float32.
TEST(Precision, means_and_instance_norms_compute_in_what_they_are_given) {
  Net net("norms");
  Value x = conv_layer(net, "conv", net.input("x", {2, 3, 8, 8}), 4, same(3), true);
  x = net.add_one("InstanceNormalization",
                  {x, net.parameter("scale", {4}), net.parameter("bias", {4})},
                  tensor_type(x.shape, x.dtype));
  reduce(net, "ReduceMean", x, {2, 3}, false);
  net.add_one("LRN", {x}, tensor_type(x.shape, x.dtype), {{"size", std::int64_t{5}}});
  const Graph graph = with_precision(std::move(net).build(), DType::kBFloat16, true);
  EXPECT_EQ(type_of(graph, "InstanceNormalization"), DType::kBFloat16);
  EXPECT_EQ(type_of(graph, "scale"), DType::kFloat32);
  EXPECT_EQ(type_of(graph, "ReduceMean"), DType::kBFloat16);
  EXPECT_EQ(type_of(graph, "LRN"), DType::kFloat32);
}

std::string error_text(const Graph& graph) {
  try {
    with_precision(graph, DType::kFloat16, true);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Precision, what_it_cannot_change_is_refused) {
  EXPECT_THAT(error_text(training_step(small_forward())),
              HasSubstr("the precision of a training step cannot be changed"));
  GraphBuilder builder("bytes");
  builder.add({.name = "x", .type = "input"}, {{.bytes = 8}});
  EXPECT_THAT(error_text(std::move(builder).build()),
              HasSubstr("op 'x': its output is known by its bytes alone"));
  EXPECT_THROW(parse_precision("int8"), Error);
  EXPECT_EQ(parse_precision("bfloat16"), Precision::kBFloat16);
}

}  // namespace
}  // namespace emplace::zoo
