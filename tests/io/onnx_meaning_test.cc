// What nodes mean in their opset becomes attributes.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/narrow_floats.h"
#include "io/onnx_models.h"
#include "io/onnx_writer.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph softmax_of_opset(int opset, const std::vector<OnnxDim>& shape, std::int64_t axis) {
  OnnxModelMaker model(opset);
  model.input("x", shape);
  auto& node = model.node("Softmax", {"x"}, {"y"}, "softmax");
  if (axis != 0) set_int(node, "axis", axis);
  model.output("y");
  return model.read();
}

TEST(OnnxMeaning, softmaxes_before_opset_13_take_all_dimensions_from_the_axis) {
  const auto meant = [](int opset, const std::vector<OnnxDim>& shape, std::int64_t axis) {
    const Graph graph = softmax_of_opset(opset, shape, axis);
    const Attributes& attributes = graph.attributes(find_op(graph, "softmax"));
    return std::pair(attributes.integer("axis", -1), attributes.integer("flattened", 0));
  };
  EXPECT_EQ(meant(11, {2, 3, 4}, 0), std::pair(1L, 1L));
  EXPECT_EQ(meant(11, {2, 3, 4}, 2), std::pair(2L, 0L));
  EXPECT_EQ(meant(11, {2, 3, 4}, -2), std::pair(1L, 1L));
  EXPECT_EQ(meant(11, {2, 3}, 0), std::pair(1L, 0L));
  EXPECT_EQ(meant(11, {2, 3, 1, 1}, 0), std::pair(1L, 0L));
  EXPECT_EQ(meant(13, {2, 3, 4}, 0), std::pair(-1L, 0L));
  EXPECT_EQ(meant(13, {2, 3, 4}, 1), std::pair(1L, 0L));
}

onnx::TensorProto& reals(OnnxModelMaker& model, const std::string& name,
                         const std::vector<float>& values) {
  auto* tensor = model.graph.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_dims(static_cast<std::int64_t>(values.size()));
  for (const float value : values) tensor->add_float_data(value);
  return *tensor;
}

std::vector<double> scales_of(const Graph& graph) {
  const AttributeValue* value = graph.attributes(find_op(graph, "resize")).find("scales");
  return value == nullptr ? std::vector<double>() : std::get<std::vector<double>>(*value);
}

TEST(OnnxMeaning, resizing_has_its_scales) {
  OnnxModelMaker model;
  model.input("x", {1, 1, 1, 5});
  reals(model, "scales", {1, 1, 1, 1.5});
  model.node("Resize", {"x", "", "scales"}, {"y"}, "resize");
  model.output("y");
  const Graph graph = model.read();
  EXPECT_THAT(scales_of(graph), ElementsAre(1, 1, 1, 1.5));
  EXPECT_THAT(output_shape(graph, "resize"), ElementsAre(1, 1, 1, 7));
  // Not an attribute to ONNX.
  EXPECT_NO_THROW(write_onnx(graph));
}

TEST(OnnxMeaning, the_first_resize_has_the_modes_of_its_opset) {
  OnnxModelMaker model(10);
  model.input("x", {1, 1, 1, 5});
  reals(model, "scales", {1, 1, 1, 0.5});
  model.node("Resize", {"x", "scales"}, {"y"}, "resize");
  model.output("y");
  const Graph graph = model.read();
  const Attributes& attributes = graph.attributes(find_op(graph, "resize"));
  EXPECT_THAT(scales_of(graph), ElementsAre(1, 1, 1, 0.5));
  EXPECT_EQ(attributes.text("coordinate_transformation_mode"), "asymmetric");
  EXPECT_EQ(attributes.text("nearest_mode"), "ceil");
  EXPECT_THAT(attributes.integers("omitted_inputs"), ElementsAre(1));
}

TEST(OnnxMeaning, activations_are_one_text_and_written_as_a_list) {
  OnnxModelMaker model;
  model.input("x", {3, 2, 5});
  model.weights("w", {1, 4, 5});
  model.weights("r", {1, 4, 4});
  auto& node = model.node("RNN", {"x", "w", "r"}, {"y"}, "rnn");
  set_int(node, "hidden_size", 4);
  add_attribute(node, "activations", onnx::AttributeProto::STRINGS).add_strings("Relu");
  model.output("y");
  const Graph graph = model.read();
  EXPECT_EQ(graph.attributes(find_op(graph, "rnn")).text("activations"), "Relu");
  const Graph again = read_onnx(write_onnx(graph), {}, "test");
  EXPECT_EQ(again.attributes(find_op(again, "rnn")).text("activations"), "Relu");
}

TEST(OnnxMeaning, numbers_of_16_bits_are_written_as_they_are_read) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const double half = half_of(static_cast<std::uint16_t>(bits));
    if (!std::isnan(half)) {
      ASSERT_EQ(half_bits(half), bits);
    }
    const double brain = bfloat_of(static_cast<std::uint16_t>(bits));
    if (!std::isnan(brain)) {
      ASSERT_EQ(bfloat_bits(brain), bits);
    }
  }
}

TEST(OnnxMeaning, the_first_resize_looks_at_every_axis_where_its_scales_are_not_known) {
  OnnxModelMaker model(10);
  model.input("x", {1, 1, 1, 5});
  model.input("scales", {4});
  model.node("Resize", {"x", "scales"}, {"y"}, "resize");
  model.value_info("y", {1, 1, 1, 3});
  model.output("y");
  const Graph graph = model.read();
  EXPECT_EQ(graph.attributes(find_op(graph, "resize")).text("nearest_mode"), "simple");
}

TEST(OnnxMeaning, what_opset_17_has_no_word_for_is_not_written) {
  const auto complaint = [](const Graph& graph) {
    try {
      write_onnx(graph);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(complaint(softmax_of_opset(11, {2, 3, 4}, 1)),
              HasSubstr("op 'softmax': takes all dimensions from its axis on"));
  EXPECT_EQ(complaint(softmax_of_opset(11, {2, 3, 4}, 2)), "");
}

TEST(OnnxMeaning, numbers_of_16_bits_are_kept) {
  OnnxModelMaker model;
  const auto constant = [&](const char* name, int type, int bits) {
    auto& node = model.node("Constant", {}, {name}, name);
    auto& tensor = *add_attribute(node, "value", onnx::AttributeProto::TENSOR).mutable_t();
    tensor.set_data_type(type);
    tensor.add_int32_data(bits);
    model.output(name);
  };
  constant("half", onnx::TensorProto::FLOAT16, 0xBE00);
  constant("tiny", onnx::TensorProto::FLOAT16, 0x0001);
  constant("most", onnx::TensorProto::FLOAT16, 0xFBFF);
  constant("brain", onnx::TensorProto::BFLOAT16, 0x3FC0);
  model.integers("shape", {2});
  auto& gaps = model.node("ConstantOfShape", {"shape"}, {"gaps"}, "gaps");
  auto& nan = *add_attribute(gaps, "value", onnx::AttributeProto::TENSOR).mutable_t();
  nan.set_data_type(onnx::TensorProto::FLOAT);
  nan.add_dims(1);
  nan.add_float_data(std::nanf(""));
  auto& fill = model.node("ConstantOfShape", {"shape"}, {"filled"}, "filled");
  auto& value = *add_attribute(fill, "value", onnx::AttributeProto::TENSOR).mutable_t();
  value.set_data_type(onnx::TensorProto::FLOAT16);
  value.add_dims(1);
  value.add_int32_data(0x3C00);
  model.output("filled");
  const Graph graph = model.read();
  const auto number = [&](const char* name) {
    return graph.attributes(find_op(graph, name)).real("value", 0);
  };
  EXPECT_EQ(number("half"), -1.5);
  EXPECT_EQ(number("tiny"), std::ldexp(1, -24));
  EXPECT_EQ(number("most"), -65504);
  EXPECT_EQ(number("brain"), 1.5);
  EXPECT_EQ(graph.attributes(find_op(graph, "gaps")).text("value"), "nan");
  const Graph again = read_onnx(write_onnx(graph), {}, "again");
  EXPECT_EQ(again.attributes(find_op(again, "gaps")).text("value"), "nan");
  const AttributeValue* filled = graph.attributes(find_op(graph, "filled")).find("value");
  ASSERT_NE(filled, nullptr);
  EXPECT_THAT(std::get<std::vector<double>>(*filled), ElementsAre(1));
}

}  // namespace
}  // namespace emplace
