// ONNX files that are made to harm: nodes that libonnx's shape inference crashes on, functions
// without end, constants without measure.
#include "io/onnx_guard.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"

#include "fuzz/onnx_nodes.h"
#include "io/onnx_models.h"
#include "io/onnx_shapes.h"
#include "support/error_text.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;

std::string refusal(const OnnxModelMaker& model) {
  return error_text([&] { model.read(); });
}

TEST(OnnxGuard, windows_with_a_stride_of_0_are_refused) {
  for (const char* type : {"MaxPool", "AveragePool", "LpPool"}) {
    OnnxModelMaker model;
    model.input("x", {1, 1, 8, 8});
    auto& node = model.node(type, {"x"}, {"y"}, "window");
    set_ints(node, "kernel_shape", {2, 2});
    set_ints(node, "strides", {0, 0});
    EXPECT_THAT(refusal(model), HasSubstr("op 'window'")) << type;
  }
  for (const char* type : {"Conv", "ConvInteger"}) {
    OnnxModelMaker model;
    const int dtype =
        std::string(type) == "Conv" ? onnx::TensorProto::FLOAT : onnx::TensorProto::INT8;
    model.input("x", {1, 1, 8, 8}, dtype);
    model.weights("w", {1, 1, 3, 3}, dtype);
    set_ints(model.node(type, {"x", "w"}, {"y"}, "conv"), "strides", {0, 1});
    EXPECT_THAT(refusal(model), HasSubstr("op 'conv'")) << type;
  }
}

TEST(OnnxGuard, windows_of_another_rank_are_refused) {
  for (const char* type : {"Conv", "ConvTranspose"}) {
    OnnxModelMaker model;
    model.input("x", {1, 1, 8});
    model.weights("w", {1, 1, 3, 3, 3, 3});
    model.node(type, {"x", "w"}, {"y"}, "conv");
    EXPECT_THAT(refusal(model), HasSubstr("op 'conv'")) << type;
  }
}

TEST(OnnxGuard, a_window_that_is_padded_to_fit_is_not_counted_for_ever) {
  OnnxModelMaker model;
  model.input("x", {1, 1, std::int64_t{1} << 60});
  auto& node = model.node("MaxPool", {"x"}, {"y"}, "window");
  set_ints(node, "kernel_shape", {3});
  set_ints(node, "strides", {2});
  set_string(node, "auto_pad", "SAME_UPPER");
  EXPECT_THAT(refusal(model), HasSubstr("op 'window'"));
}

TEST(OnnxGuard, axes_outside_the_tensor_are_refused) {
  OnnxModelMaker gather;
  gather.input("x", {2, 3});
  gather.input("i", {2, 1}, onnx::TensorProto::INT64);
  set_int(gather.node("GatherND", {"x", "i"}, {"y"}, "pick"), "batch_dims", -4);
  EXPECT_THAT(refusal(gather), HasSubstr("op 'pick'"));

  OnnxModelMaker norm;
  norm.input("x", {2, 3});
  norm.weights("s", {3});
  set_int(norm.node("LayerNormalization", {"x", "s"}, {"y", "mean"}, "norm"), "axis", -9);
  norm.output("mean");
  EXPECT_THAT(refusal(norm), HasSubstr("op 'norm'"));
}

TEST(OnnxGuard, a_shape_of_two_thousand_million_dimensions_is_refused) {
  OnnxModelMaker model;
  model.input("dims", {(std::int64_t{1} << 31) - 1}, onnx::TensorProto::INT64);
  model.node("ConstantOfShape", {"dims"}, {"y"}, "fill");
  EXPECT_THAT(refusal(model), HasSubstr("op 'fill'"));
}

TEST(OnnxGuard, sane_nodes_are_inferred) {
  OnnxModelMaker model;
  model.input("x", {1, 3, 9, 9});
  model.weights("w", {4, 3, 3, 3});
  auto& conv = model.node("Conv", {"x", "w"}, {"c"}, "conv");
  set_ints(conv, "strides", {2, 2});
  set_ints(conv, "pads", {1, 1, 1, 1});
  auto& pool = model.node("MaxPool", {"c"}, {"y"}, "pool");
  set_ints(pool, "kernel_shape", {2, 2});
  set_string(pool, "auto_pad", "SAME_UPPER");
  const Graph graph = model.read();
  EXPECT_THAT(output_shape(graph, "conv"), testing::ElementsAre(1, 4, 5, 5));
  EXPECT_THAT(output_shape(graph, "pool"), testing::ElementsAre(1, 4, 5, 5));
}

// A crash ends the whole program: whoever sees that should run the fuzzer onnx_node.
TEST(OnnxGuard, nodes_of_every_operator_with_odd_inputs_do_not_crash) {
  std::mt19937_64 random(1);
  constexpr int kBytes = 300;
  constexpr int kNodes = 20'000;
  for (int i = 0; i < kNodes; ++i) {
    std::string bytes;
    for (int k = 0; k < kBytes; ++k) bytes += static_cast<char>(random());
    fuzz::Choices choices(bytes);
    const fuzz::MadeNode made = fuzz::NodeMaker(choices).make();
    infer_node({made.proto, &made.opsets}, made.inputs);
  }
}

// f0 calls f1, which calls f2, ...
OnnxModelMaker& chain_of_functions(OnnxModelMaker& model, int length) {
  model.import_opset("own", 1);
  for (int i = 0; i < length; ++i) {
    auto* function = model.model.add_functions();
    function->set_domain("own");
    function->set_name("f" + std::to_string(i));
    function->add_input("a");
    function->add_output("b");
    auto* node = function->add_node();
    const bool last = i + 1 == length;
    node->set_op_type(last ? "Relu" : "f" + std::to_string(i + 1));
    if (!last) node->set_domain("own");
    node->add_input("a");
    node->add_output("b");
  }
  model.input("x", {2});
  model.node("f0", {"x"}, {"y"}, "call", "own");
  model.output("y");
  return model;
}

TEST(OnnxFunctions, that_call_each_other_too_deep_are_refused) {
  OnnxModelMaker fine;
  EXPECT_EQ(refusal(chain_of_functions(fine, limits::kFunctionDepth)), "");
  OnnxModelMaker deep;
  EXPECT_THAT(refusal(chain_of_functions(deep, 20'000)), HasSubstr("more than 64 deep"));
}

TEST(OnnxFunctions, that_grow_exponentially_are_refused) {
  OnnxModelMaker model;
  constexpr int kDoublings = 30;
  chain_of_functions(model, kDoublings);
  for (auto& function : *model.model.mutable_functions()) {
    *function.add_node() = function.node(0);
    function.mutable_node(1)->set_output(0, "unused");
  }
  EXPECT_THAT(refusal(model), HasSubstr("expand to more than 2000000 nodes"));
}

TEST(OnnxNames, that_are_not_utf8_are_refused_and_such_attributes_left_out) {
  OnnxModelMaker model;
  model.input("x", {2});
  model.node("Relu", {"x"}, {"y"}, "r\xF6lu");
  EXPECT_THAT(refusal(model), HasSubstr("name: 'r\\xf6lu' is not UTF-8"));

  OnnxModelMaker bytes;
  bytes.input("x", {2});
  bytes.value_info("y", {2});
  set_string(bytes.node("Relu", {"x"}, {"y"}, "relu"), "blob", "\xFF\xFE");
  EXPECT_EQ(refusal(bytes), "");
}

}  // namespace
}  // namespace emplace
