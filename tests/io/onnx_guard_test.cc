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

TEST(OnnxGuard, sizes_that_wrap_around_are_refused) {
  for (const char* type : {"DepthToSpace", "SpaceToDepth"}) {
    OnnxModelMaker model;
    model.input("x", {1, 4, 2, 2});
    set_int(model.node(type, {"x"}, {"y"}, "blocks"), "blocksize", std::int64_t{1} << 32);
    EXPECT_THAT(refusal(model), HasSubstr("op 'blocks'")) << type;
  }
  OnnxModelMaker reshape;
  reshape.input("x", {std::int64_t{1} << 32, std::int64_t{1} << 31});
  reshape.integers("sizes", {-1, 3, 5, 17, 257, 641, 65537, 6700417});
  reshape.node("Reshape", {"x", "sizes"}, {"y"}, "reshape");
  EXPECT_THAT(refusal(reshape), HasSubstr("reshape"));

  OnnxModelMaker tile;
  tile.input("x", {std::int64_t{1} << 40, 2});
  tile.integers("repeats", {std::int64_t{1} << 40, 1});
  tile.node("Tile", {"x", "repeats"}, {"y"}, "tile");
  EXPECT_THAT(refusal(tile), HasSubstr("op 'tile'"));

  // A size of 0 is the input's, which multiplies too.
  OnnxModelMaker copied;
  copied.input("x", {std::int64_t{1} << 32, 2});
  copied.integers("sizes", {0, std::int64_t{1} << 32, -1});
  copied.node("Reshape", {"x", "sizes"}, {"y"}, "reshape");
  EXPECT_THAT(refusal(copied), HasSubstr("op 'reshape'"));
}

TEST(OnnxGuard, parts_of_size_0_are_refused) {
  OnnxModelMaker model;
  model.input("x", {4, 2});
  model.integer("size", 0);
  model.node("SplitToSequence", {"x", "size"}, {"y"}, "split");
  EXPECT_THAT(refusal(model), HasSubstr("op 'split'"));
}

TEST(OnnxGuard, an_input_of_no_known_type_is_no_crash) {
  OnnxModelMaker model;
  model.import_opset("own", 1);
  model.input("x", {2, 2});
  model.node("Unknown", {"x"}, {"u"}, "unknown", "own");
  set_int(model.node("EyeLike", {"u"}, {"y"}, "eye"), "dtype", onnx::TensorProto::FLOAT);
  EXPECT_THAT(refusal(model), HasSubstr("op 'unknown'"));
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

TEST(OnnxGuard, sane_sizes_are_inferred) {
  OnnxModelMaker model;
  model.input("x", {2, 8, 3, 3});
  set_int(model.node("DepthToSpace", {"x"}, {"d"}, "blocks"), "blocksize", 2);
  model.integers("repeats", {1, 2, 1, 3});
  model.node("Tile", {"d", "repeats"}, {"t"}, "tile");
  model.integers("sizes", {0, -1, 9});
  model.node("Reshape", {"d", "sizes"}, {"r"}, "reshape");
  model.integer("size", 2);
  model.node("SplitToSequence", {"r", "size"}, {"s"}, "split");
  model.node("SequenceLength", {"s"}, {"n"}, "count");
  set_int(model.node("EyeLike", {"sizes2"}, {"e"}, "eye"), "dtype", onnx::TensorProto::FLOAT);
  model.input("sizes2", {3, 3}, onnx::TensorProto::INT64);
  const Graph graph = model.read();
  EXPECT_THAT(output_shape(graph, "blocks"), testing::ElementsAre(2, 2, 6, 6));
  EXPECT_THAT(output_shape(graph, "tile"), testing::ElementsAre(2, 4, 6, 18));
  EXPECT_THAT(output_shape(graph, "reshape"), testing::ElementsAre(2, 8, 9));
  EXPECT_THAT(output_shape(graph, "eye"), testing::ElementsAre(3, 3));
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

// f0, whose body of an If, a Loop or a Scan calls f0.
TEST(OnnxFunctions, that_call_themselves_in_bodies_are_refused) {
  for (const std::string type : {"If", "Loop", "Scan"}) {
    OnnxModelMaker model;
    model.import_opset("own", 1);
    model.integer("rounds", 3);
    onnx::NodeProto node;
    node.set_op_type(type);
    node.add_output("b");
    std::vector<std::string> bodies{"body"};
    if (type == "If") {
      node.add_input("a");
      bodies = {"then_branch", "else_branch"};
    } else if (type == "Loop") {
      node.add_input("a");
      node.add_input("");
    } else {
      node.add_input("a");
      set_int(node, "num_scan_inputs", 1);
    }
    for (const std::string& name : bodies) {
      OnnxGraphMaker body = add_graph(node, name);
      body.node("f0", {"a"}, {"inner"}, "again", "own");
      body.output("inner");
      if (type == "Loop") body.output("inner");
    }
    auto* function = model.model.add_functions();
    function->set_domain("own");
    function->set_name("f0");
    function->add_input("a");
    function->add_output("b");
    *function->add_node() = node;
    model.input("x", type == "Scan" ? std::vector<OnnxDim>{4, 2} : std::vector<OnnxDim>{},
                type == "If" ? onnx::TensorProto::BOOL : onnx::TensorProto::INT64);
    model.node("f0", {"x"}, {"y"}, "call", "own");
    model.output("y");
    EXPECT_THAT(refusal(model), HasSubstr("more than 64 deep")) << type;
  }
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
