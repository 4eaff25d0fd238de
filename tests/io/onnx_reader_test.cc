#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "io/onnx_models.h"
#include "io/readers.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The message of the Error that reading the model throws; empty when it throws none.
std::string read_error(const OnnxModelMaker& model, const ReadOptions& options = {}) {
  try {
    model.read(options);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// x[2, 3] -> MatMul with w[3, 4] -> Relu
void make_small(OnnxModelMaker& model) {
  model.input("x", {2, 3});
  model.weights("layer.0.weight", {3, 4});
  model.node("MatMul", {"x", "layer.0.weight"}, {"h"}, "/net/layer/layer.0/MatMul");
  model.node("Relu", {"h"}, {"y"}, "/net/Relu");
  model.output("y");
}

TEST(OnnxReader, makes_an_op_of_every_input_initializer_and_node) {
  OnnxModelMaker model;
  make_small(model);
  model.model.set_producer_name("pytorch");
  const Graph graph = model.read();
  ASSERT_EQ(graph.num_ops(), 4U);
  EXPECT_EQ(graph.name(), "test");
  EXPECT_EQ(graph.source(), "ONNX, pytorch");
  EXPECT_EQ(graph.type(find_op(graph, "x")), "input");
  const OpId weight = find_op(graph, "layer.0.weight");
  EXPECT_EQ(graph.role(weight), OpRole::kParameter);
  EXPECT_EQ(graph.module(weight), "layer.0");
  EXPECT_EQ(graph.bytes(graph.outputs(weight)[0]), 3 * 4 * 4);
  const OpId product = find_op(graph, "/net/layer/layer.0/MatMul");
  EXPECT_EQ(graph.type(product), "MatMul");
  EXPECT_EQ(graph.module(product), "net.layer.0");
  EXPECT_EQ(graph.flops(product), 2 * 2 * 3 * 4);
  EXPECT_EQ(graph.bytes_moved(product), 4 * (2 * 3 + 3 * 4 + 2 * 4));
  EXPECT_EQ(graph.phase(product), Phase::kForward);
  EXPECT_THAT(graph.inputs(product),
              ElementsAre(graph.outputs(find_op(graph, "x"))[0], graph.outputs(weight)[0]));
  EXPECT_THAT(output_shape(graph, "/net/Relu"), ElementsAre(2, 4));
}

TEST(OnnxReader, puts_a_weight_right_before_the_first_op_that_reads_it) {
  OnnxModelMaker model;
  model.input("x", {2, 3});
  model.weights("unused", {7});
  model.weights("second", {3});
  model.weights("first", {3});
  model.node("Add", {"x", "first"}, {"a"}, "add");
  model.node("Mul", {"a", "second"}, {"b"}, "mul");
  model.output("b");
  const Graph graph = model.read();
  std::vector<std::string> names;
  for (OpId op = 0; op < graph.num_ops(); ++op) names.emplace_back(graph.op_name(op));
  EXPECT_THAT(names, ElementsAre("x", "first", "add", "second", "mul", "unused"));
}

TEST(OnnxReader, takes_float_tensors_for_weights_and_other_numbers_for_constants) {
  OnnxModelMaker model;
  model.weights("half", {4}, onnx::TensorProto::FLOAT16);
  model.weights("quantised", {4}, onnx::TensorProto::INT8);
  model.weights("scalar", {});
  model.integers("axes", {1, 2});
  auto& constant = model.node("Constant", {}, {"c"}, "constant node");
  *add_attribute(constant, "value", onnx::AttributeProto::TENSOR).mutable_t() =
      model.graph.initializer(3);
  const Graph graph = model.read();
  EXPECT_EQ(graph.type(find_op(graph, "half")), "parameter");
  EXPECT_EQ(graph.type(find_op(graph, "quantised")), "parameter");
  EXPECT_EQ(graph.type(find_op(graph, "scalar")), "constant");
  EXPECT_EQ(graph.type(find_op(graph, "axes")), "constant");
  EXPECT_EQ(graph.type(find_op(graph, "constant node")), "constant");
  EXPECT_THAT(output_shape(graph, "constant node"), ElementsAre(2));
}

TEST(OnnxReader, keeps_the_contents_of_small_constants) {
  OnnxModelMaker model;
  model.integers("axes", {1, -2});
  model.integer("scalar", 7);
  model.integers("long", std::vector<std::int64_t>(257, 1));
  auto& constant = model.node("Constant", {}, {"c"}, "node");
  auto& tensor = *add_attribute(constant, "value", onnx::AttributeProto::TENSOR).mutable_t();
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.add_float_data(0.5);
  tensor.add_float_data(2);
  add_attribute(model.node("Constant", {}, {"f"}, "real"), "value_float",
                onnx::AttributeProto::FLOAT)
      .set_f(0.25);
  const Graph graph = model.read();
  const auto value = [&](const char* op) {
    return graph.attributes(find_op(graph, op)).find("value");
  };
  EXPECT_EQ(*value("axes"), AttributeValue(std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(*value("scalar"), AttributeValue(std::int64_t{7}));
  EXPECT_EQ(value("long"), nullptr);
  EXPECT_EQ(*value("node"), AttributeValue(std::vector<double>{0.5, 2}));
  EXPECT_EQ(*value("real"), AttributeValue(0.25));
}

TEST(OnnxReader, lists_inputs_as_the_node_does_and_says_which_are_left_out) {
  OnnxModelMaker model;
  model.input("x", {2});
  model.input("limit", {});
  model.node("Mul", {"x", "x"}, {"y"}, "square");
  model.node("Clip", {"y", "", "limit"}, {"z"}, "clip");
  model.output("z");
  const Graph graph = model.read();
  const OpId square = find_op(graph, "square");
  ASSERT_EQ(graph.inputs(square).size(), 2U);
  EXPECT_EQ(graph.inputs(square)[0], graph.inputs(square)[1]);
  EXPECT_EQ(graph.inputs(find_op(graph, "clip")).size(), 2U);
  EXPECT_THAT(graph.attributes(find_op(graph, "clip")).integers("omitted_inputs"), ElementsAre(1));
  EXPECT_TRUE(graph.attributes(square).empty());
}

TEST(OnnxReader, takes_an_input_with_an_initializer_for_the_initializer) {
  OnnxModelMaker model;
  make_small(model);
  model.input("layer.0.weight", {"rows", 4});
  const Graph graph = model.read();
  EXPECT_EQ(graph.num_ops(), 4U);
  EXPECT_EQ(graph.type(find_op(graph, "layer.0.weight")), "parameter");
}

TEST(OnnxReader, makes_views_of_ops_that_only_rename_or_reshape) {
  OnnxModelMaker model;
  model.input("x", {2, 3, 1});
  model.integers("shape", {6, -1});
  model.integers("axes", {0});
  model.node("Reshape", {"x", "shape"}, {"r"}, "reshape");
  model.node("Unsqueeze", {"r", "axes"}, {"u"}, "unsqueeze");
  model.node("Identity", {"u"}, {"i"}, "identity");
  model.node("Transpose", {"i"}, {"t"}, "transpose");
  model.output("t");
  const Graph graph = model.read();
  for (const char* name : {"reshape", "unsqueeze", "identity"}) {
    EXPECT_TRUE(graph.is_view(find_op(graph, name))) << name;
    EXPECT_EQ(graph.bytes_moved(find_op(graph, name)), 0) << name;
  }
  EXPECT_THAT(output_shape(graph, "reshape"), ElementsAre(6, 1));
  EXPECT_FALSE(graph.is_view(find_op(graph, "transpose")));
  EXPECT_EQ(graph.bytes_moved(find_op(graph, "transpose")), 2 * 6 * 4);
}

TEST(OnnxReader, gives_nodes_without_a_name_or_with_a_repeated_one_their_own) {
  OnnxModelMaker model;
  model.input("x", {2});
  model.node("Relu", {"x"}, {"a"});
  model.node("Relu", {"a"}, {"b"}, "same");
  model.node("Relu", {"b"}, {"c"}, "same");
  model.node("Relu", {"c"}, {"d"}, "x");
  model.output("d");
  const Graph graph = model.read();
  ASSERT_EQ(graph.num_ops(), 5U);
  EXPECT_EQ(graph.op_name(0), "x");
  EXPECT_EQ(graph.op_name(1), "Relu:a");
  EXPECT_EQ(graph.op_name(2), "same");
  EXPECT_EQ(graph.op_name(3), "Relu:c");
  EXPECT_EQ(graph.op_name(4), "Relu:d");
}

TEST(OnnxReader, skips_omitted_inputs_and_drops_unused_outputs_of_unknown_shape) {
  OnnxModelMaker model;
  model.input("x", {2, 3});
  model.node("Clip", {"x", "", ""}, {"c"}, "clip");
  model.node("SkipLayerNormalization", {"c", "c"}, {"n", "", "inverse"}, "norm", "com.microsoft");
  model.output("n");
  const Graph graph = model.read();
  EXPECT_EQ(graph.inputs(find_op(graph, "clip")).size(), 1U);
  EXPECT_EQ(graph.outputs(find_op(graph, "norm")).size(), 1U);
  EXPECT_THAT(output_shape(graph, "norm"), ElementsAre(2, 3));
}

TEST(OnnxReader, sorts_nodes_that_are_out_of_order) {
  OnnxModelMaker model;
  model.input("x", {2});
  model.node("Neg", {"b"}, {"c"}, "third");
  model.node("Relu", {"x"}, {"a"}, "first");
  model.node("Exp", {"a"}, {"b"}, "second");
  model.output("c");
  const Graph graph = model.read();
  EXPECT_LT(find_op(graph, "first"), find_op(graph, "second"));
  EXPECT_LT(find_op(graph, "second"), find_op(graph, "third"));
}

TEST(OnnxReader, takes_the_module_from_the_later_pytorch_exporter) {
  OnnxModelMaker model;
  model.input("x", {2});
  auto& node = model.node("Relu", {"x"}, {"a"}, "node_relu_1");
  onnx::StringStringEntryProto scopes;
  scopes.set_key("pkg.torch.onnx.name_scopes");
  scopes.set_value("['', 'layer1', 'layer1.0.act', 'relu']");
  node.mutable_unknown_fields()->AddLengthDelimited(9, scopes.SerializeAsString());
  model.output("a");
  const Graph graph = model.read();
  EXPECT_EQ(graph.module(find_op(graph, "node_relu_1")), "layer1.0.act");
}

TEST(OnnxReader, counts_a_sequence_as_what_it_was_made_of) {
  OnnxModelMaker model;
  model.input("x", {2, 3});
  model.input("y", {4, 3});
  model.node("SequenceConstruct", {"x", "y"}, {"s"}, "pair");
  auto& concat = model.node("ConcatFromSequence", {"s"}, {"c"}, "concat");
  set_int(concat, "axis", 0);
  model.value_info("c", {6, 3});
  model.output("c");
  const Graph graph = model.read();
  EXPECT_EQ(graph.bytes(graph.outputs(find_op(graph, "pair"))[0]), 4 * (6 + 12));
  EXPECT_FALSE(graph.has_shape(graph.outputs(find_op(graph, "pair"))[0]));
}

TEST(OnnxReader, keeps_sparse_weights_at_their_stored_size) {
  OnnxModelMaker model;
  model.input("x", {2, 100});
  auto* sparse = model.graph.add_sparse_initializer();
  sparse->add_dims(100);
  sparse->add_dims(50);
  sparse->mutable_values()->set_name("w");
  sparse->mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse->mutable_values()->add_dims(7);
  sparse->mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  sparse->mutable_indices()->add_dims(7);
  model.node("MatMul", {"x", "w"}, {"y"}, "mm");
  model.output("y");
  const Graph graph = model.read();
  EXPECT_EQ(graph.bytes(graph.outputs(find_op(graph, "w"))[0]), 7 * 4 + 7 * 8);
  EXPECT_THAT(output_shape(graph, "mm"), ElementsAre(2, 50));
}

TEST(OnnxReader, refuses_bytes_that_are_no_model) {
  OnnxModelMaker model;
  make_small(model);
  const std::string bytes = model.bytes();
  const auto error = [](const std::string& text) {
    try {
      read_onnx(text, {}, "x");
    } catch (const Error& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  EXPECT_THAT(error(bytes.substr(0, bytes.size() - 5)), HasSubstr("cut short"));
  EXPECT_THAT(error(std::string(64, '\xff')), HasSubstr("not an ONNX model"));
  EXPECT_THAT(error(""), HasSubstr("has no graph"));
}

TEST(OnnxReader, refuses_a_value_that_nothing_produces) {
  OnnxModelMaker model;
  model.input("x", {2});
  model.node("Add", {"x", "ghost"}, {"y"}, "add");
  EXPECT_THAT(read_error(model), AllOf(HasSubstr("op 'add'"), HasSubstr("'ghost'")));

  OnnxModelMaker no_output;
  make_small(no_output);
  no_output.output("nowhere");
  EXPECT_THAT(read_error(no_output), HasSubstr("output 'nowhere'"));
}

TEST(OnnxReader, refuses_a_value_with_two_producers) {
  OnnxModelMaker model;
  make_small(model);
  model.node("Relu", {"x"}, {"h"}, "again");
  EXPECT_THAT(read_error(model), AllOf(HasSubstr("op 'again'"), HasSubstr("'h'"),
                                       HasSubstr("/net/layer/layer.0/MatMul")));
  OnnxModelMaker of_input;
  make_small(of_input);
  of_input.node("Neg", {"h"}, {"x"}, "neg");
  EXPECT_THAT(read_error(of_input), AllOf(HasSubstr("op 'neg'"), HasSubstr("'x'")));

  OnnxModelMaker twice;
  twice.weights("w", {2});
  twice.weights("w", {2});
  EXPECT_THAT(read_error(twice), HasSubstr("initializer 'w' occurs twice"));
}

TEST(OnnxReader, names_the_ops_of_a_cycle) {
  OnnxModelMaker model;
  model.input("x", {2});
  model.node("Relu", {"x"}, {"a"}, "before");
  model.node("Add", {"a", "c"}, {"b"}, "one");
  model.node("Relu", {"b"}, {"c"}, "two");
  EXPECT_THAT(read_error(model), AllOf(HasSubstr("cycle"), HasSubstr("'one'"), HasSubstr("'two'"),
                                       Not(HasSubstr("'before'"))));
}

TEST(OnnxReader, refuses_types_that_onnx_does_not_have) {
  OnnxModelMaker of_input;
  of_input.input("x", {2}, 99);
  EXPECT_THAT(read_error(of_input), AllOf(HasSubstr("input 'x'"), HasSubstr("99")));

  OnnxModelMaker of_weight;
  of_weight.weights("w", {2}, 77);
  EXPECT_THAT(read_error(of_weight), AllOf(HasSubstr("initializer 'w'"), HasSubstr("77")));

  OnnxModelMaker negative;
  negative.weights("w", {2, -3});
  EXPECT_THAT(read_error(negative), AllOf(HasSubstr("initializer 'w'"), HasSubstr("-3")));

  OnnxModelMaker huge;
  huge.weights("w", {std::int64_t{1} << 40, std::int64_t{1} << 40});
  EXPECT_THAT(read_error(huge), AllOf(HasSubstr("op 'w'"), HasSubstr("overflows")));

  OnnxModelMaker newer;  // int4, newer than the library
  newer.weights("w", {3}, 22);
  const Graph graph = newer.read();
  EXPECT_EQ(graph.dtype(graph.outputs(0)[0]), DType::kInt4);
}

TEST(OnnxReader, lists_every_op_whose_cost_is_not_known_in_one_error) {
  OnnxModelMaker model;
  model.import_opset("my.ops", 1);
  model.input("x", {2});
  model.node("Strange", {"x"}, {"a"}, "strange_1", "my.ops");
  model.node("Relu", {"a"}, {"b"}, "follower");
  model.node("Strange", {"x"}, {"c"}, "strange_2", "my.ops");
  model.node("NonZero", {"x"}, {"d"}, "where_not_zero");
  model.node("Relu", {"x"}, {"e"}, "fine");
  EXPECT_THAT(read_error(model),
              AllOf(HasSubstr("4 ops"), HasSubstr("op 'strange_1', op 'strange_2'"),
                    HasSubstr("my.ops.Strange"), HasSubstr("'where_not_zero'"),
                    HasSubstr("int64[1, "), HasSubstr("'follower'"), Not(HasSubstr("'fine'"))));
}

}  // namespace
}  // namespace emplace
