// ONNX out: valid to libonnx, and read back as what it was.
#include "io/onnx_writer.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "graph/graph_builder.h"

#include "io/file.h"
#include "io/onnx_check.h"
#include "io/onnx_models.h"
#include "io/readers.h"
#include "io/same_graph.h"
#include "support/captures.h"
#include "zoo/layers.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The message of the Error that writing the graph throws; empty when it throws none.
std::string write_error(const Graph& graph) {
  try {
    write_onnx(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// A convolution, a normalisation and all kinds of sources, down to a loss.
Graph small_net(DType dtype = DType::kFloat32) {
  zoo::Net net("small/net", {.dtype = dtype});
  const zoo::Value x = net.input("x", {2, 3, 8, 8});
  const zoo::Value labels = net.input("labels", {2}, DType::kInt64);
  const auto scope = net.scope("body");
  zoo::Value h = zoo::conv_bn_relu(net, "stem", x, 4, zoo::same(3, 2));
  h = zoo::dropout(net, h, 0.5);
  h = zoo::scale(net, zoo::global_average_pool(net, h), 0.25);
  h = zoo::gelu(net, zoo::linear(net, "head", h, 10));
  zoo::classification_loss(net, h, labels);
  return std::move(net).build();
}

// Every activation that is a function, and both norms, on [2, 5, 8].
Graph functions_net(DType dtype) {
  zoo::Net net("functions", {.dtype = dtype});
  zoo::Value h = net.input("x", {2, 5, 8});
  h = zoo::gelu(net, h);
  h = net.add_one("Gelu", {h}, h.shape, {{"approximate", std::string("tanh")}});
  h = zoo::silu(net, h);
  h = zoo::rms_norm(net, "norm", h);
  const auto scope = net.scope("wide");
  net.add_one("RMSNormalization", {h, net.parameter("weight", {5, 8})}, h.shape,
              {{"axis", std::int64_t{1}}});
  return std::move(net).build();
}

TEST(OnnxWriter, writes_what_onnx_has_words_for) {
  const onnx::ModelProto model = parse_onnx(write_onnx(small_net()));
  EXPECT_EQ(model.ir_version(), 8);
  EXPECT_EQ(model.producer_name(), "emplace");
  EXPECT_EQ(model.opset_import(0).version(), 17);
  const onnx::GraphProto& graph = model.graph();
  EXPECT_EQ(graph.name(), "small/net");
  ASSERT_EQ(graph.input_size(), 2);
  EXPECT_EQ(graph.input(1).name(), "labels");
  EXPECT_EQ(graph.input(1).type().tensor_type().elem_type(), onnx::TensorProto::INT64);
  ASSERT_EQ(graph.output_size(), 1);
  EXPECT_EQ(graph.output(0).name(), "body.loss.SoftmaxCrossEntropyLoss");
  const onnx::TensorProto& bias = graph.initializer(2);
  EXPECT_EQ(bias.name(), "body.stem.bn.bias");
  EXPECT_THAT(bias.dims(), ElementsAre(4));
  EXPECT_EQ(bias.data_location(), onnx::TensorProto::EXTERNAL);
  EXPECT_EQ(bias.external_data(0).value(), "small_net.weights");
  EXPECT_EQ(bias.external_data(1).value(), std::to_string(4 * (4 * 3 * 9 + 4)));
  EXPECT_EQ(bias.external_data(2).value(), "16");
  const onnx::NodeProto& conv = graph.node(0);
  EXPECT_EQ(conv.op_type(), "Conv");
  EXPECT_EQ(conv.name(), "body.stem.conv.Conv");
  EXPECT_THAT(conv.input(), ElementsAre("x", "body.stem.conv.weight"));
  EXPECT_THAT(conv.output(), ElementsAre("body.stem.conv.Conv"));
  // Every value has a type: those of nodes are outputs or listed.
  int outputs = 0;
  for (const auto& node : graph.node()) outputs += node.output_size();
  EXPECT_EQ(outputs, graph.output_size() + graph.value_info_size());
}

TEST(OnnxWriter, is_valid_and_reads_back_in_every_type_of_float) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    SCOPED_TRACE(std::string(dtype_name(dtype)));
    EXPECT_EQ(onnx_complaint(write_onnx(small_net(dtype))), "");
  }
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(std::string(dtype_name(dtype)));
    EXPECT_EQ(onnx_complaint(write_onnx(functions_net(dtype))), "");
  }
}

TEST(OnnxWriter, tests_would_see_a_wrong_shape_and_a_wrong_type) {
  onnx::ModelProto model = parse_onnx(write_onnx(small_net()));
  auto* type = model.mutable_graph()->mutable_value_info(0)->mutable_type()->mutable_tensor_type();
  const onnx::ModelProto right = model;
  type->mutable_shape()->mutable_dim(1)->set_dim_value(5);
  EXPECT_NE(onnx_complaint(model.SerializeAsString()), "");
  model = right;
  model.mutable_graph()->mutable_node(0)->clear_attribute();
  EXPECT_NE(onnx_complaint(model.SerializeAsString()), "");
}

// Ops by name: types, costs, modules, attributes (as far as single precision keeps them), shapes.
void expect_read_back(const Graph& graph) {
  const Graph read = read_onnx(write_onnx(graph), {}, graph.name());
  ASSERT_EQ(read.num_ops(), graph.num_ops());
  EXPECT_EQ(zoo::count_parameters(read), zoo::count_parameters(graph));
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    SCOPED_TRACE("op '" + std::string(graph.op_name(op)) + "'");
    const auto found = read.find_op(graph.op_name(op));
    ASSERT_TRUE(found);
    EXPECT_EQ(read.type(*found), graph.type(op));
    EXPECT_EQ(read.is_view(*found), graph.is_view(op));
    if (!graph.is_source(op)) {
      EXPECT_EQ(read.flops(*found), graph.flops(op));
      EXPECT_EQ(read.bytes_moved(*found), graph.bytes_moved(op));
      EXPECT_EQ(read.module(*found), graph.module(op));
    }
    ASSERT_EQ(read.inputs(*found).size(), graph.inputs(op).size());
    for (std::size_t i = 0; i < graph.inputs(op).size(); ++i) {
      EXPECT_EQ(read.op_name(read.producer(read.inputs(*found)[i])),
                graph.op_name(graph.producer(graph.inputs(op)[i])));
    }
    ASSERT_EQ(read.outputs(*found).size(), graph.outputs(op).size());
    for (std::size_t i = 0; i < graph.outputs(op).size(); ++i) {
      EXPECT_EQ(copy_of(read.shape(read.outputs(*found)[i])),
                copy_of(graph.shape(graph.outputs(op)[i])));
      EXPECT_EQ(read.dtype(read.outputs(*found)[i]), graph.dtype(graph.outputs(op)[i]));
    }
    for (const auto& [name, value] : graph.attributes(op).entries()) {
      const AttributeValue* same = read.attributes(*found).find(name);
      ASSERT_NE(same, nullptr) << name;
      EXPECT_EQ(same->index(), value.index()) << name;
      if (std::holds_alternative<double>(value)) {
        EXPECT_EQ(static_cast<float>(std::get<double>(*same)),
                  static_cast<float>(std::get<double>(value)));
      } else {
        EXPECT_TRUE(*same == value) << name;
      }
    }
  }
}

TEST(OnnxWriter, writes_what_reads_back_op_by_op) {
  expect_read_back(small_net());
  expect_read_back(functions_net(DType::kFloat32));
}

TEST(OnnxWriter, keeps_tensors_that_are_read_twice_and_inputs_and_outputs_that_are_left_out) {
  OnnxModelMaker model;
  model.input("x", {2, 3});
  model.integer("most", 6);
  auto& cast = model.node("Cast", {"most"}, {"limit"}, "cast");
  set_int(cast, "to", onnx::TensorProto::FLOAT);
  model.node("Mul", {"x", "x"}, {"square"}, "square");
  model.node("Clip", {"square", "", "limit"}, {"clipped"}, "clip");
  model.weights("w", {1, 20, 3});
  model.weights("r", {1, 20, 5});
  model.integers("axes", {0});
  model.node("Unsqueeze", {"clipped", "axes"}, {"sequence"}, "unsqueeze");
  set_int(model.node("LSTM", {"sequence", "w", "r"}, {"", "state"}, "lstm"), "hidden_size", 5);
  model.output("state");
  const Graph graph = model.read();
  EXPECT_EQ(graph.inputs(find_op(graph, "square")).size(), 2U);
  EXPECT_EQ(graph.attributes(find_op(graph, "lstm")).integers("omitted_outputs").size(), 1U);
  const std::string bytes = write_onnx(graph);
  const onnx::ModelProto written = parse_onnx(bytes);
  std::map<std::string, const onnx::NodeProto*> nodes;
  for (const auto& node : written.graph().node()) nodes[node.name()] = &node;
  EXPECT_THAT(nodes.at("square")->input(), ElementsAre("x", "x"));
  EXPECT_THAT(nodes.at("clip")->input(), ElementsAre("square", "", "cast"));
  EXPECT_THAT(nodes.at("lstm")->output(), ElementsAre("", "lstm"));
  EXPECT_EQ(onnx_complaint(bytes), "");
  expect_read_back(graph);
}

TEST(OnnxWriter, writes_constants_in_their_element_type) {
  zoo::Net net("constants", {.dtype = DType::kFloat16});
  const zoo::Value x = net.input("x", {4});
  for (const double factor : {1.0, 65504.0, 65520.0, 6.103515625e-05, 5.960464477539063e-08, -0.1,
                              1.00048828125, 1.00146484375}) {
    zoo::scale(net, x, factor);
  }
  const onnx::ModelProto model = parse_onnx(write_onnx(std::move(net).build()));
  std::vector<std::int32_t> bits;
  for (const auto& node : model.graph().node()) {
    if (node.op_type() == "Constant") bits.push_back(node.attribute(0).t().int32_data(0));
  }
  EXPECT_THAT(bits, ElementsAre(0x3C00, 0x7BFF, 0x7C00, 0x0400, 0x0001, 0xAE66, 0x3C00, 0x3C02));

  GraphBuilder builder("others");
  builder.add({.name = "brain", .type = "constant", .attributes = {{"value", 1.01171875}}},
              {{.dtype = DType::kBFloat16}});
  builder.add({.name = "flags",
               .type = "constant",
               .attributes = {{"value", std::vector<std::int64_t>{1, 0}}}},
              {{.shape = {2, 1}, .dtype = DType::kBool}});
  const onnx::ModelProto others = parse_onnx(write_onnx(std::move(builder).build()));
  EXPECT_EQ(others.graph().node(0).attribute(0).t().int32_data(0), 0x3F82);
  EXPECT_THAT(others.graph().node(1).attribute(0).t().int32_data(), ElementsAre(1, 0));
  EXPECT_THAT(others.graph().node(1).attribute(0).t().dims(), ElementsAre(2, 1));
}

// One op after an input of [2, 3].
std::string error_of_op(OpSpec op, std::vector<TensorSpec> outputs = {
                                       {.shape = {2, 3}, .dtype = DType::kFloat32}}) {
  GraphBuilder builder("one");
  const auto x =
      builder.add({.name = "x", .type = "input"}, {{.shape = {2, 3}, .dtype = DType::kFloat32}});
  if (op.type != "constant") op.inputs = x;
  builder.add(std::move(op), outputs);
  return write_error(std::move(builder).build());
}

TEST(OnnxWriter, names_the_op_that_onnx_cannot_hold) {
  EXPECT_THAT(error_of_op({.name = "b", .type = "Relu", .phase = Phase::kBackward}),
              HasSubstr("op 'b': is of the backward phase"));
  EXPECT_THAT(error_of_op({.name = "u", .type = "SgdUpdate", .phase = Phase::kUpdate}, {}),
              HasSubstr("op 'u': is of the update phase"));
  EXPECT_THAT(error_of_op({.name = "a", .type = "aten_mm"}),
              AllOf(HasSubstr("op 'a': type:"), HasSubstr("no operator 'aten_mm'")));
  EXPECT_THAT(error_of_op({.name = "c", .type = "constant"}),
              HasSubstr("op 'c': attributes: 'value'"));
  EXPECT_THAT(error_of_op({.name = "c",
                           .type = "constant",
                           .attributes = {{"value", std::vector<std::int64_t>{1}}}}),
              HasSubstr("op 'c': attributes: value: has 1 numbers; the tensor's shape says 6"));
  EXPECT_THAT(error_of_op({.name = "c", .type = "constant", .attributes = {{"value", 0.5}}},
                          {{.dtype = DType::kInt64}}),
              HasSubstr("op 'c': attributes: value: 0.5 is not a whole number"));
  EXPECT_THAT(error_of_op({.name = "a", .type = "Add"}),
              AllOf(HasSubstr("op 'a': is no Add"), HasSubstr("input size 1")));
  EXPECT_THAT(error_of_op({.name = "c", .type = "Cast"}),
              AllOf(HasSubstr("op 'c': is no Cast"), HasSubstr("Required attribute 'to'")));
  EXPECT_THAT(error_of_op({.name = "r", .type = "Relu", .attributes = {{"slope", 0.5}}}),
              AllOf(HasSubstr("op 'r': is no Relu"), HasSubstr("slope")));
  EXPECT_THAT(error_of_op({.name = "s", .type = "Swish", .attributes = {{"alpha", 0.5}}}),
              HasSubstr("op 's': attributes: the function for Swish does not have 'alpha'"));
  EXPECT_THAT(error_of_op({.name = "n", .type = "Not"}),
              HasSubstr("op 'n': inputs: Not of opset 17 takes no float32 as 'X'"));
  EXPECT_THAT(error_of_op({.name = "r", .type = "Relu"}, {{.bytes = 24}}),
              HasSubstr("op 'r': outputs: tensor 1 has bytes but no shape"));
  EXPECT_THAT(
      error_of_op({.name = "r", .type = "Relu"}, {{.shape = {2, 3}, .dtype = DType::kInt4}}),
      HasSubstr("op 'r': outputs: tensor 1 is of int4"));
}

// Runs a function's body on numbers, one axis long: enough of ONNX for the functions that we write.
class BodyRunner {
 public:
  using Numbers = std::vector<double>;

  explicit BodyRunner(const onnx::ModelProto& model, const onnx::NodeProto& call) {
    for (const auto& function : model.functions()) {
      if (function.name() == call.op_type()) function_ = &function;
    }
    for (const auto& attribute : call.attribute()) attributes_[attribute.name()] = &attribute;
  }

  Numbers run(const std::vector<Numbers>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      values_[function_->input(static_cast<int>(i))] = inputs[i];
    }
    for (const auto& node : function_->node()) values_[node.output(0)] = compute(node);
    return values_.at(function_->output(0));
  }

 private:
  Numbers compute(const onnx::NodeProto& node) {
    static const std::map<std::string, std::function<double(double)>> kUnary{
        {"Erf", [](double x) { return std::erf(x); }},
        {"Tanh", [](double x) { return std::tanh(x); }},
        {"Sqrt", [](double x) { return std::sqrt(x); }},
        {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
        {"Cast", [](double x) { return x; }},
        {"CastLike", [](double x) { return x; }}};
    static const std::map<std::string, std::function<double(double, double)>> kBinary{
        {"Add", std::plus<>()}, {"Mul", std::multiplies<>()}, {"Div", std::divides<>()}};
    if (node.op_type() == "Constant") {
      const auto& attribute = node.attribute(0);
      return {attribute.ref_attr_name().empty() ? attribute.f()
                                                : attributes_.at(attribute.ref_attr_name())->f()};
    }
    const Numbers& x = values_.at(node.input(0));
    if (node.op_type() == "ReduceMean") {
      double sum = 0;
      for (const double number : x) sum += number;
      return {sum / static_cast<double>(x.size())};
    }
    Numbers result;
    if (const auto unary = kUnary.find(node.op_type()); unary != kUnary.end()) {
      for (const double number : x) result.push_back(unary->second(number));
      return result;
    }
    const Numbers& y = values_.at(node.input(1));
    for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
      result.push_back(
          kBinary.at(node.op_type())(x[x.size() == 1 ? 0 : i], y[y.size() == 1 ? 0 : i]));
    }
    return result;
  }

  const onnx::FunctionProto* function_ = nullptr;
  std::map<std::string, const onnx::AttributeProto*> attributes_;
  std::map<std::string, Numbers> values_;
};

TEST(OnnxWriter, functions_compute_what_their_operators_do) {
  const onnx::ModelProto model = parse_onnx(write_onnx(functions_net(DType::kFloat32)));
  std::map<std::string, const onnx::NodeProto*> calls;
  for (const auto& node : model.graph().node()) {
    if (node.domain() == "emplace") calls.emplace(node.op_type(), &node);
  }
  ASSERT_EQ(calls.size(), 4U);
  const auto expect = [&](const std::string& name, const std::vector<std::vector<double>>& inputs,
                          const std::vector<double>& outputs) {
    const auto result = BodyRunner(model, *calls.at(name)).run(inputs);
    ASSERT_EQ(result.size(), outputs.size()) << name;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_NEAR(result[i], outputs[i], 1e-6) << name;
    }
  };
  // x times the normal distribution's share below x; published values of the others.
  expect("Gelu", {{1, -2, 0}}, {0.8413447460685429, -0.04550026389635842, 0});
  expect("GeluTanh", {{1, -2, 0}}, {0.8411919906082768, -0.04540230591222, 0});
  expect("Swish", {{1, -2, 0}}, {0.7310585786300049, -0.2384058440442351, 0});
  const double rms = std::sqrt((9.0 + 16) / 2 + 1e-6);
  expect("RMSNormalization", {{3, 4}, {2, 0.5}}, {2 * 3 / rms, 0.5 * 4 / rms});
}

TEST(OnnxWriter, writes_exported_models_back_where_their_constants_are_small) {
  int written = 0;
  for (const char* name : kOnnxExports) {
    SCOPED_TRACE(name);
    const Graph graph = read_onnx(read_file(onnx_export_path(name)), {}, name);
    const std::string error = write_error(graph);
    // Contents of large constants are not kept.
    if (!error.empty()) {
      EXPECT_THAT(error, HasSubstr("attributes: 'value', a constant's contents, is missing"));
      continue;
    }
    ++written;
    EXPECT_EQ(onnx_complaint(write_onnx(graph)), "");
    expect_read_back(graph);
  }
  EXPECT_GE(written, 1);
}

}  // namespace
}  // namespace emplace
