// Symbolic dimensions, shape inference, functions and bodies.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "io/onnx_models.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

template <class Read>
Error error_when(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::kInput, "no error"};
}
std::string message_of(const OnnxModelMaker& model, const ReadOptions& options = {}) {
  return error_when([&] { model.read(options); }).what();
}

void make_symbolic(OnnxModelMaker& model) {
  model.input("x", {"batch", 3});
  model.input("z", {"batch", "length"});
  model.weights("w", {3, 4});
  model.node("MatMul", {"x", "w"}, {"y"}, "mm");
  model.output("y");
}

TEST(OnnxDims, are_set_by_name) {
  OnnxModelMaker model;
  make_symbolic(model);
  const Graph graph = model.read({.dims = {{"batch", 32}, {"length", 5}}});
  EXPECT_THAT(output_shape(graph, "x"), ElementsAre(32, 3));
  EXPECT_THAT(output_shape(graph, "z"), ElementsAre(32, 5));
  EXPECT_THAT(output_shape(graph, "mm"), ElementsAre(32, 4));
  EXPECT_EQ(graph.flops(find_op(graph, "mm")), 2 * 32 * 3 * 4);
}

TEST(OnnxDims, without_a_value_are_all_named_in_one_error) {
  OnnxModelMaker model;
  make_symbolic(model);
  EXPECT_THAT(message_of(model), AllOf(HasSubstr("'batch'"), HasSubstr("'length'"),
                                       HasSubstr("such as batch=1"), HasSubstr("input 'x'")));
  EXPECT_THAT(message_of(model, {.dims = {{"batch", 2}}}),
              AllOf(HasSubstr("'length'"), Not(HasSubstr("'batch'"))));
}

TEST(OnnxDims, without_a_name_are_an_error_that_says_which) {
  OnnxModelMaker model;
  model.input("x", {2, ""});
  model.node("Relu", {"x"}, {"y"}, "relu");
  EXPECT_THAT(message_of(model), AllOf(HasSubstr("axis 1"), HasSubstr("input 'x'")));

  OnnxModelMaker no_rank;
  no_rank.input("x", {});
  no_rank.graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  no_rank.node("Relu", {"x"}, {"y"}, "relu");
  EXPECT_THAT(message_of(no_rank), AllOf(HasSubstr("input 'x'"), HasSubstr("unknown rank")));
}

TEST(OnnxDims, refuse_a_name_that_the_model_does_not_have_and_a_size_that_is_not_positive) {
  OnnxModelMaker model;
  make_symbolic(model);
  const Error unknown = error_when([&] { model.read({.dims = {{"bach", 2}}}); });
  EXPECT_EQ(unknown.kind(), ErrorKind::kOption);
  EXPECT_THAT(unknown.what(), AllOf(HasSubstr("bach"), HasSubstr("'batch', 'length'")));
  const Error zero = error_when([&] { model.read({.dims = {{"batch", 0}}}); });
  EXPECT_EQ(zero.kind(), ErrorKind::kOption);
}

TEST(OnnxDims, of_values_inside_may_be_set_too) {
  OnnxModelMaker model;
  model.input("x", {8});
  model.node("NonZero", {"x"}, {"y"}, "nonzero");
  model.value_info("y", {1, "found"}, onnx::TensorProto::INT64);
  model.output("y");
  EXPECT_THAT(message_of(model), AllOf(HasSubstr("'nonzero'"), HasSubstr("found")));
  EXPECT_THAT(output_shape(model.read({.dims = {{"found", 5}}}), "nonzero"), ElementsAre(1, 5));
}

// What exporters write for x.reshape(x.shape[0], -1, 2): the target shape is computed.
TEST(OnnxShapes, follow_arithmetic_on_shapes) {
  OnnxModelMaker model;
  model.input("x", {"batch", 6});
  model.integer("zero", 0);
  model.integers("axes", {0});
  model.integers("rest", {-1, 2});
  model.node("Shape", {"x"}, {"s"}, "shape");
  model.node("Gather", {"s", "zero"}, {"b"}, "gather");
  model.node("Unsqueeze", {"b", "axes"}, {"u"}, "unsqueeze");
  auto& concat = model.node("Concat", {"u", "rest"}, {"target"}, "concat");
  set_int(concat, "axis", 0);
  model.node("Reshape", {"x", "target"}, {"y"}, "reshape");
  model.output("y");
  EXPECT_THAT(output_shape(model.read({.dims = {{"batch", 7}}}), "reshape"), ElementsAre(7, 3, 2));
}

// The detour through Where and Equal that PyTorch's exporter writes for expand(-1, 5).
TEST(OnnxShapes, follow_the_choice_of_a_shape) {
  OnnxModelMaker model;
  model.input("x", {"batch", 1});
  model.integers("asked", {-1, 5});
  model.integers("two", {2});
  model.integers("minus_one", {-1});
  auto& ones = model.node("ConstantOfShape", {"two"}, {"ones"}, "ones");
  auto* one = add_attribute(ones, "value", onnx::AttributeProto::TENSOR).mutable_t();
  one->set_data_type(onnx::TensorProto::INT64);
  one->add_dims(1);
  one->add_int64_data(1);
  model.node("Equal", {"asked", "minus_one"}, {"any"}, "equal");
  model.node("Where", {"any", "ones", "asked"}, {"shape"}, "where");
  model.node("Expand", {"x", "shape"}, {"y"}, "expand");
  model.output("y");
  EXPECT_THAT(output_shape(model.read({.dims = {{"batch", 3}}}), "expand"), ElementsAre(3, 5));
}

// Pads as PyTorch's exporter turns them round: slice with a negative step, transpose, reshape.
TEST(OnnxShapes, follow_the_turning_round_of_pads) {
  OnnxModelMaker model;
  model.input("x", {4, 10});
  model.integers("pads", {3, 1, 0, 0});  // of the last axis, then of the first
  model.integers("pairs", {-1, 2});
  model.integers("zero", {0});
  model.integers("minus_one", {-1});
  model.integers("lowest", {-9223372036854775807});
  model.node("Reshape", {"pads", "pairs"}, {"p"}, "pair");
  model.node("Slice", {"p", "minus_one", "lowest", "zero", "minus_one"}, {"r"}, "reverse");
  auto& transpose = model.node("Transpose", {"r"}, {"t"}, "transpose");
  set_ints(transpose, "perm", {1, 0});
  model.node("Reshape", {"t", "minus_one"}, {"flat"}, "flatten");
  model.node("Pad", {"x", "flat"}, {"y"}, "pad");
  model.output("y");
  EXPECT_THAT(output_shape(model.read(), "pad"), ElementsAre(4, 14));
}

TEST(OnnxShapes, come_from_the_file_when_the_opset_is_newer_than_the_library) {
  OnnxModelMaker model(23);
  model.input("x", {2, 3, 8});
  model.weights("scale", {8});
  model.node("RMSNormalization", {"x", "scale"}, {"n"}, "norm");
  model.node("MysteryOfOpset40", {"n"}, {"m"}, "mystery");
  model.value_info("n", {2, 3, 8});
  model.value_info("m", {2, 3, 8});
  model.output("m");
  EXPECT_THAT(message_of(model), AllOf(HasSubstr("1 ops"), HasSubstr("'mystery'")));
  model.graph.mutable_node(1)->set_op_type("Gelu");
  const Graph graph = model.read();
  EXPECT_THAT(output_shape(graph, "norm"), ElementsAre(2, 3, 8));
  EXPECT_GT(graph.flops(find_op(graph, "mystery")), 0);
}

TEST(OnnxShapes, are_inferred_for_newer_opsets_where_the_operator_did_not_change) {
  OnnxModelMaker model(21);
  model.input("x", {2, 3, 8});
  model.integers("axes", {-1});
  model.node("ReduceMean", {"x", "axes"}, {"m"}, "mean");
  auto& split = model.node("Split", {"x"}, {"a", "b"}, "split");
  set_int(split, "axis", 2);
  set_int(split, "num_outputs", 2);
  model.node("Sub", {"x", "m"}, {"y"}, "sub");
  model.output("y");
  const Graph graph = model.read();
  EXPECT_THAT(output_shape(graph, "mean"), ElementsAre(2, 3, 1));
  EXPECT_THAT(output_shape(graph, "split", 1), ElementsAre(2, 3, 4));
  EXPECT_THAT(output_shape(graph, "sub"), ElementsAre(2, 3, 8));
}

TEST(OnnxShapes, are_unknown_when_a_newer_opset_changed_the_operator) {
  OnnxModelMaker model(19);
  model.input("x", {1, 1, 8, 8});
  auto& pool = model.node("AveragePool", {"x"}, {"y"}, "pool");
  set_ints(pool, "kernel_shape", {2, 2});
  set_ints(pool, "dilations", {3, 3});
  model.output("y");
  EXPECT_THAT(message_of(model), HasSubstr("'pool'"));
}

onnx::NodeProto& add_function_node(onnx::FunctionProto& function, const std::string& type,
                                   const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs,
                                   const std::string& domain = {}) {
  auto* node = function.add_node();
  node->set_op_type(type);
  node->set_name(type);
  node->set_domain(domain);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return *node;
}

onnx::FunctionProto& add_function(OnnxModelMaker& model, const std::string& name) {
  auto* function = model.model.add_functions();
  function->set_name(name);
  function->set_domain("my");
  auto* import = function->add_opset_import();
  import->set_version(17);
  return *function;
}

TEST(OnnxFunctions, are_inlined_with_their_attributes) {
  OnnxModelMaker model;
  model.import_opset("my", 1);
  model.input("x", {4, 6});
  set_int(model.node("Twice", {"x"}, {"a"}, "outer", "my"), "dim", 0);
  set_int(model.node("Twice", {"a"}, {"b"}, "outer", "my"), "dim", 1);
  model.output("b");
  auto& twice = add_function(model, "Twice");
  twice.add_input("in");
  twice.add_output("out");
  twice.add_attribute("dim");
  add_function_node(twice, "Relu", {"in"}, {"mid"});
  auto& softmax = add_function_node(twice, "Inner", {"mid"}, {"out"}, "my");
  auto& axis = add_attribute(softmax, "where", onnx::AttributeProto::INT);
  axis.set_ref_attr_name("dim");
  auto& inner = add_function(model, "Inner");
  inner.add_input("in");
  inner.add_output("out");
  inner.add_attribute("where");
  auto& concat = add_function_node(inner, "Concat", {"in", "in"}, {"out"});
  add_attribute(concat, "axis", onnx::AttributeProto::INT).set_ref_attr_name("where");

  const Graph graph = model.read();
  ASSERT_EQ(graph.num_ops(), 5U);
  EXPECT_EQ(graph.type(1), "Relu");
  EXPECT_EQ(graph.op_name(1), "outer/Relu");
  EXPECT_EQ(graph.type(2), "Concat");
  EXPECT_EQ(graph.op_name(2), "outer/Inner/Concat");
  const auto first = graph.shape(graph.outputs(2)[0]);
  EXPECT_THAT(first, ElementsAre(8, 6));
  EXPECT_THAT(graph.shape(graph.outputs(4)[0]), ElementsAre(8, 12));
}

TEST(OnnxFunctions, may_hand_an_input_through_and_have_defaults) {
  OnnxModelMaker model;
  model.import_opset("my", 1);
  model.input("x", {4, 6});
  model.node("F", {"x"}, {"same", "flat"}, "call", "my");
  model.output("same");
  auto& function = add_function(model, "F");
  function.add_input("in");
  function.add_output("in");
  function.add_output("out");
  auto& flatten = add_function_node(function, "Flatten", {"in"}, {"out"});
  add_attribute(flatten, "axis", onnx::AttributeProto::INT).set_ref_attr_name("from");
  onnx::AttributeProto from;
  from.set_name("from");
  from.set_type(onnx::AttributeProto::INT);
  from.set_i(0);
  function.mutable_unknown_fields()->AddLengthDelimited(11, from.SerializeAsString());
  const Graph graph = model.read();
  EXPECT_THAT(output_shape(graph, "call/Flatten"), ElementsAre(1, 24));
  EXPECT_THAT(output_shape(graph, "Identity:same"), ElementsAre(4, 6));
}

TEST(OnnxFunctions, that_call_themselves_are_refused) {
  OnnxModelMaker model;
  model.import_opset("my", 1);
  model.input("x", {4});
  model.node("F", {"x"}, {"y"}, "call", "my");
  auto& function = add_function(model, "F");
  function.add_input("in");
  function.add_output("out");
  add_function_node(function, "F", {"in"}, {"out"}, "my");
  EXPECT_THAT(message_of(model), AllOf(HasSubstr("'F'"), HasSubstr("calls itself")));
}

// if cond: y = x @ small, else: y = relu(x @ large), with both weights taken from around
void make_if(OnnxModelMaker& model) {
  model.input("cond", {}, onnx::TensorProto::BOOL);
  model.input("x", {2, 3});
  model.weights("small", {3, 4});
  model.weights("large", {3, 4});
  auto& node = model.node("If", {"cond"}, {"y"}, "if");
  OnnxGraphMaker yes = add_graph(node, "then_branch");
  yes.node("MatMul", {"x", "small"}, {"a"});
  yes.output("a");
  OnnxGraphMaker no = add_graph(node, "else_branch");
  no.node("MatMul", {"x", "large"}, {"b"});
  no.weights("bias", {4});
  no.node("Add", {"b", "bias"}, {"c"});
  no.output("c");
  model.output("y");
}

TEST(OnnxBodies, of_an_if_cost_as_the_dearer_branch_and_read_what_they_take_from_around) {
  OnnxModelMaker model;
  make_if(model);
  const Graph graph = model.read();
  const OpId op = find_op(graph, "if");
  EXPECT_EQ(graph.flops(op), 2 * 2 * 3 * 4 + 2 * 4);
  EXPECT_EQ(graph.inputs(op).size(), 4U);
  EXPECT_EQ(graph.persistent_bytes(op), 4 * 4);
  EXPECT_THAT(output_shape(graph, "if"), ElementsAre(2, 4));
}

TEST(OnnxBodies, of_an_if_with_a_known_condition_cost_as_the_branch_taken) {
  OnnxModelMaker model;
  make_if(model);
  model.graph.mutable_input()->DeleteSubrange(0, 1);
  auto* cond = model.graph.add_initializer();
  cond->set_name("cond");
  cond->set_data_type(onnx::TensorProto::BOOL);
  cond->add_int32_data(1);
  const Graph graph = model.read();
  EXPECT_EQ(graph.flops(find_op(graph, "if")), 2 * 2 * 3 * 4);
}

TEST(OnnxBodies, of_a_loop_cost_their_rounds) {
  OnnxModelMaker model;
  model.input("x", {2, 3});
  model.integer("rounds", 5);
  auto& node = model.node("Loop", {"rounds", "", "x"}, {"last", "all"}, "loop");
  OnnxGraphMaker body = add_graph(node, "body");
  body.input("i", {}, onnx::TensorProto::INT64);
  body.input("go", {}, onnx::TensorProto::BOOL);
  body.input("state", {"unsaid", "unsaid_too"});
  body.node("Identity", {"go"}, {"go_on"});
  body.node("Add", {"state", "x"}, {"next"});
  body.node("Identity", {"next"}, {"kept"});
  body.output("go_on");
  body.output("next");
  body.output("kept");
  model.output("last");
  model.output("all");
  const Graph graph = model.read();
  const OpId op = find_op(graph, "loop");
  EXPECT_EQ(graph.flops(op), 5 * 6);
  EXPECT_EQ(graph.bytes_moved(op), 5 * 3 * 6 * 4);
  EXPECT_THAT(output_shape(graph, "loop", 0), ElementsAre(2, 3));
  EXPECT_THAT(output_shape(graph, "loop", 1), ElementsAre(5, 2, 3));
}

TEST(OnnxBodies, of_a_loop_without_a_known_trip_count_are_an_unknown_cost) {
  OnnxModelMaker model;
  model.input("rounds", {}, onnx::TensorProto::INT64);
  model.input("x", {2});
  auto& node = model.node("Loop", {"rounds", "", "x"}, {"last"}, "loop");
  OnnxGraphMaker body = add_graph(node, "body");
  body.input("i", {}, onnx::TensorProto::INT64);
  body.input("go", {}, onnx::TensorProto::BOOL);
  body.input("state", {2});
  body.node("Identity", {"go"}, {"go_on"});
  body.node("Relu", {"state"}, {"next"});
  body.output("go_on");
  body.output("next");
  model.output("last");
  EXPECT_THAT(message_of(model), AllOf(HasSubstr("'loop'"), HasSubstr("trip count")));
}

TEST(OnnxBodies, of_a_scan_cost_the_length_of_the_sequence) {
  OnnxModelMaker model;
  model.input("state", {3});
  model.input("xs", {7, 3});
  auto& node = model.node("Scan", {"state", "xs"}, {"last", "ys"}, "scan");
  set_int(node, "num_scan_inputs", 1);
  OnnxGraphMaker body = add_graph(node, "body");
  body.input("s", {3});
  body.input("x", {3});
  body.node("Add", {"s", "x"}, {"next"});
  body.node("Identity", {"next"}, {"y"});
  body.output("next");
  body.output("y");
  model.output("ys");
  const Graph graph = model.read();
  EXPECT_EQ(graph.flops(find_op(graph, "scan")), 7 * 3);
  EXPECT_THAT(output_shape(graph, "scan", 1), ElementsAre(7, 3));
}

TEST(OnnxBodies, say_which_of_their_ops_is_not_known) {
  OnnxModelMaker model;
  make_if(model);
  auto* branch = model.graph.mutable_node(0)->mutable_attribute(0)->mutable_g();
  branch->mutable_node(0)->set_op_type("Strange");
  branch->mutable_node(0)->set_name("inside");
  EXPECT_THAT(message_of(model),
              AllOf(HasSubstr("'if'"), HasSubstr("'inside'"), HasSubstr("Strange")));
}

}  // namespace
}  // namespace emplace
