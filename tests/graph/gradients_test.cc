#include "graph/gradients.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

#include "graph/graph_builder.h"
#include "graph/training.h"

#include "support/backward_text.h"

namespace emplace {
namespace {

using Lines = std::vector<std::string>;

TensorSpec real(Shape shape) {
  return {.shape = std::move(shape), .dtype = DType::kFloat32};
}
TensorSpec whole(Shape shape) {
  return {.shape = std::move(shape), .dtype = DType::kInt64};
}
TensorSpec truth(Shape shape) {
  return {.shape = std::move(shape), .dtype = DType::kBool};
}

// A model of one op. Floating inputs are parameters p0, p1, ..., others are given.
struct OneOp {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  Attributes attributes = {};
};

Graph graph_of(const std::string& type, const OneOp& model) {
  GraphBuilder builder(type);
  OpSpec op{.name = "op", .type = type, .flops = 1000, .attributes = model.attributes};
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const bool floating = model.inputs[i].dtype == DType::kFloat32;
    op.inputs.push_back(
        builder.add({.name = fmt::format("p{}", i), .type = floating ? "parameter" : "input"},
                    {model.inputs[i]})[0]);
  }
  builder.add(op, model.outputs);
  return std::move(builder).build();
}

Lines gradients_of(const std::string& type, const OneOp& model) {
  Lines lines;
  for (const std::string& line : backward_text(training_step(graph_of(type, model)))) {
    if (line.find("seed =") == std::string::npos && line.find("Update(") == std::string::npos) {
      lines.push_back(line);
    }
  }
  return lines;
}

// Shapes that each operator takes; what is not here maps [2, 6] to [2, 6].
using Models = std::map<std::string, OneOp, std::less<>>;

void add_arithmetic(Models& models) {
  const TensorSpec x = real({2, 6});
  const TensorSpec image = real({2, 4, 8, 8});
  const TensorSpec small = real({2, 4, 4, 4});
  const TensorSpec channels = real({4});
  const TensorSpec sequence = real({2, 5, 8});
  for (const char* type : {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "PRelu", "Sum",
                           "Mean", "BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu"}) {
    models[type] = {{x, real({6})}, {x}};
  }
  for (const char* type :
       {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
        "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    models[type] = {{x, whole({1})}, {real({2})}};
  }
  for (const char* type : {"AveragePool", "LpPool", "MaxPool"}) models[type] = {{image}, {small}};
  for (const char* type : {"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"}) {
    models[type] = {{image}, {real({2, 4, 1, 1})}};
  }
  for (const char* type :
       {"BatchNormalization", "InstanceNormalization", "GroupNormalization", "GroupNorm"}) {
    models[type] = {{image, channels, channels, channels, channels}, {image}};
  }
  for (const char* type :
       {"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"}) {
    models[type] = {{sequence, real({8}), real({8})}, {sequence, real({2, 5, 1}), real({2, 5, 1})}};
  }
  for (const char* type :
       {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SkipGroupNorm"}) {
    models[type] = {{sequence, sequence, real({8})}, {sequence, sequence}};
  }
  for (const char* type : {"Conv", "FusedConv", "NhwcFusedConv"}) {
    models[type] = {{image, real({3, 4, 3, 3}), real({3})}, {real({2, 3, 6, 6})}};
  }
  models["DeformConv"] = {{image, real({3, 4, 3, 3}), real({2, 18, 6, 6}), real({3})},
                          {real({2, 3, 6, 6})}};
  models["ConvTranspose"] = {{small, real({4, 3, 2, 2}), real({3})}, {real({2, 3, 5, 5})}};
  for (const char* type : {"MatMul", "FusedMatMul", "TransposeMatMul", "FusedMatMulActivation"}) {
    models[type] = {{sequence, real({8, 3})}, {real({2, 5, 3})}};
  }
  for (const char* type : {"Gemm", "FusedGemm"}) {
    models[type] = {{x, real({6, 3}), real({3})}, {real({2, 3})}};
  }
  models["Einsum"] = {{real({2, 3}), real({3, 4})}, {real({2, 4})}, {{"equation", "ij,jk->ik"}}};
  models["LSTM"] = {{sequence, real({1, 12, 8}), real({1, 12, 3}), real({1, 24})},
                    {real({2, 1, 5, 3}), real({1, 5, 3}), real({1, 5, 3})}};
  models["GRU"] = {{sequence, real({1, 9, 8}), real({1, 9, 3})}, {real({2, 1, 5, 3})}};
  models["RNN"] = {{sequence, real({1, 3, 8}), real({1, 3, 3})}, {real({2, 1, 5, 3})}};
  for (const char* type : {"Attention", "MultiHeadAttention", "GroupQueryAttention"}) {
    models[type] = {{sequence, sequence, sequence}, {sequence}};
  }
  const TensorSpec heads = real({2, 3, 5, 8});
  models["FlashAttention"] = {{heads, heads, heads}, {heads, real({2, 3, 5})}};
}

void add_layout(Models& models) {
  const TensorSpec x = real({2, 6});
  const TensorSpec image = real({2, 4, 8, 8});
  const TensorSpec small = real({2, 4, 4, 4});
  const TensorSpec sequence = real({2, 5, 8});
  models["EmbedLayerNormalization"] = {{whole({2, 5}), real({30, 8}), real({5, 8}), real({8})},
                                       {sequence}};
  models["SoftmaxCrossEntropyLoss"] = {{x, whole({2})}, {real({}), x}};
  models["NegativeLogLikelihoodLoss"] = {{x, whole({2})}, {real({})}};
  models["Gather"] = {{real({30, 8}), whole({2, 5})}, {sequence}};
  models["GatherElements"] = {{x, whole({2, 3})}, {real({2, 3})}};
  models["GatherND"] = {{x, whole({4, 2})}, {real({4})}};
  models["Scatter"] = models["ScatterElements"] = {{x, whole({2, 3}), real({2, 3})}, {x}};
  models["ScatterND"] = {{x, whole({1, 1}), real({1, 6})}, {x}};
  models["Compress"] = {{x, truth({2})}, {real({1, 6})}};
  models["Where"] = {{truth({2, 1}), x, real({6})}, {x}};
  models["Slice"] = {{x, whole({1}), whole({1}), whole({1})}, {real({2, 4})}};
  models["Pad"] = {{x, whole({4})}, {real({4, 8})}};
  models["Tile"] = {{x, whole({2})}, {real({4, 6})}};
  models["Expand"] = {{x, whole({3})}, {real({5, 2, 6})}};
  models["Reshape"] = {{x, whole({1})}, {real({12})}};
  models["Flatten"] = {{image}, {real({2, 256})}};
  models["Squeeze"] = {{real({2, 1, 6})}, {x}};
  models["Unsqueeze"] = {{x, whole({1})}, {real({2, 1, 6})}};
  models["Transpose"] = {
      {sequence}, {real({5, 8, 2})}, {{"perm", std::vector<std::int64_t>{1, 2, 0}}}};
  models["Concat"] = {{x, real({2, 3})}, {real({2, 9})}, {{"axis", std::int64_t{-1}}}};
  models["Split"] = {{x}, {real({2, 2}), real({2, 4})}, {{"axis", std::int64_t{1}}}};
  models["TopK"] = {{x, whole({1})}, {real({2, 3}), whole({2, 3})}};
  models["CumSum"] = models["CumProd"] = {{x, whole({})}, {x}};
  models["Trilu"] = {{x, whole({})}, {x}};
  models["Dropout"] = {{x}, {x, truth({2, 6})}};
  models["BiasDropout"] = {{x, real({6}), x}, {x, truth({2, 6})}};
  models["Resize"] = models["Upsample"] = {{small}, {image}};
  models["DepthToSpace"] = {{real({2, 16, 2, 2})}, {small}};
  models["SpaceToDepth"] = {{small}, {real({2, 16, 2, 2})}};
  models["GridSample"] = {{image, real({2, 4, 4, 2})}, {small}};
  models["AffineGrid"] = {{real({2, 2, 3}), whole({4})}, {real({2, 4, 4, 2})}};
  models["RoiAlign"] =
      models["MaxRoiPool"] = {{image, real({7, 4}), whole({7})}, {real({7, 4, 3, 3})}};
  models["MaxUnpool"] = {{small, whole({2, 4, 4, 4})}, {image}};
  models["Col2Im"] = {{real({2, 16, 16}), whole({2}), whole({2})}, {image}};
  models["CenterCropPad"] = {{image, whole({2})}, {small}};
  models["Det"] = {{real({2, 3, 3})}, {real({2})}};
  models["DFT"] = {{real({2, 8, 1}), whole({})}, {real({2, 8, 2})}};
  models["STFT"] = {{real({2, 64, 1}), whole({}), real({16})}, {real({2, 7, 9, 2})}};
  models["ReverseSequence"] = {{sequence, whole({5})}, {sequence}};
}

OneOp model_of(std::string_view type) {
  static const Models models = [] {
    Models made;
    add_arithmetic(made);
    add_layout(made);
    return made;
  }();
  const auto found = models.find(type);
  return found != models.end() ? found->second : OneOp{{real({2, 6})}, {real({2, 6})}};
}

TEST(Gradients, every_rule_trains_a_model_of_one_op) {
  for (const GradientRow& row : gradient_rows()) {
    const std::string type(row.type);
    const OneOp model = model_of(type);
    const Graph forward = graph_of(type, model);
    if (row.rule == nullptr) {
      EXPECT_THROW(training_step(forward), Error) << type;
      continue;
    }
    const Graph graph = training_step(forward);
    for (std::size_t i = 0; i < model.inputs.size(); ++i) {
      const bool trained =
          positions::contain(row.differentiable, i) && model.inputs[i].dtype == DType::kFloat32;
      const auto update = graph.find_op(fmt::format("p{}/update", i));
      EXPECT_EQ(update.has_value(), trained) << type << " input " << i;
      if (!update) continue;
      const TensorId gradient = graph.inputs(*update)[1];
      EXPECT_TRUE(std::ranges::equal(graph.shape(gradient), model.inputs[i].shape)) << type;
    }
  }
}

TEST(Gradients, what_the_table_says_is_kept_is_what_gradients_read) {
  for (const GradientRow& row : gradient_rows()) {
    if (row.rule == nullptr || !row.keeps.empty()) continue;
    const std::string type(row.type);
    const Graph graph = training_step(graph_of(type, model_of(type)));
    const OpId op = *graph.find_op("op");
    std::set<TensorId> expected;
    for (std::size_t i = 0; i < graph.inputs(op).size(); ++i) {
      if (positions::contain(row.inputs, i)) expected.insert(graph.inputs(op)[i]);
    }
    for (std::size_t i = 0; i < graph.outputs(op).size(); ++i) {
      if (positions::contain(row.outputs, i)) expected.insert(graph.outputs(op)[i]);
    }
    std::set<TensorId> read;
    for (OpId other = op + 1; other < graph.num_ops(); ++other) {
      if (graph.phase(other) != Phase::kBackward || graph.type(other) == "OnesLike") continue;
      for (const TensorId tensor : graph.inputs(other)) {
        if (graph.producer(tensor) <= op) read.insert(tensor);
      }
    }
    EXPECT_EQ(read, expected) << type;
  }
}

TEST(Gradients, docs_list_every_operator_with_what_it_keeps) {
  std::ifstream file(EMPLACE_SOURCE_DIR "/docs/training.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const GradientRow& row : gradient_rows()) {
    const std::string line = fmt::format("| {} | {} |\n", row.type, describe_kept(row));
    EXPECT_NE(text.str().find(line), std::string::npos) << "docs/training.md lacks: " << line;
  }
}

// What a matrix product with these attributes makes of its operands.
Shape product_shape(const Graph& graph, OpId op) {
  const auto shape = graph.shape(graph.inputs(op)[0]);
  const auto other = graph.shape(graph.inputs(op)[1]);
  Shape a(shape.begin(), shape.end());
  Shape b(other.begin(), other.end());
  if (graph.attributes(op).integer("transA", 0) != 0) std::swap(a.end()[-1], a.end()[-2]);
  if (graph.attributes(op).integer("transB", 0) != 0) std::swap(b.end()[-1], b.end()[-2]);
  EXPECT_EQ(a.back(), b.end()[-2]);
  Shape result = a.size() >= b.size() ? a : b;
  for (std::size_t i = 3; i <= result.size(); ++i) {
    const std::int64_t in_a = i <= a.size() ? a.end()[-static_cast<std::ptrdiff_t>(i)] : 1;
    const std::int64_t in_b = i <= b.size() ? b.end()[-static_cast<std::ptrdiff_t>(i)] : 1;
    result.end()[-static_cast<std::ptrdiff_t>(i)] = std::max(in_a, in_b);
  }
  result.end()[-2] = a.end()[-2];
  result.back() = b.back();
  return result;
}

void expect_products_fit(const std::string& type, const OneOp& model, std::int64_t flops) {
  const Graph graph = training_step(graph_of(type, model));
  int products = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kBackward) continue;
    if (graph.type(op) != "MatMul" && graph.type(op) != "Gemm") continue;
    ++products;
    EXPECT_TRUE(std::ranges::equal(product_shape(graph, op), graph.shape(graph.outputs(op)[0])))
        << op_text(graph, op);
    EXPECT_EQ(graph.flops(op), flops) << op_text(graph, op);
  }
  EXPECT_EQ(products, 2);
}

TEST(Gradients, matrix_products_multiply_what_fits_however_operands_lie) {
  for (const std::int64_t a : {0, 1}) {
    for (const std::int64_t b : {0, 1}) {
      const Attributes attributes{{"transA", a}, {"transB", b}};
      const Shape left = a != 0 ? Shape{3, 2} : Shape{2, 3};
      const Shape right = b != 0 ? Shape{5, 3} : Shape{3, 5};
      expect_products_fit("Gemm", {{real(left), real(right)}, {real({2, 5})}, attributes}, 60);
      expect_products_fit("FusedMatMul", {{real(left), real(right)}, {real({2, 5})}, attributes},
                          60);
      Shape batched = left;
      batched.insert(batched.begin(), 7);
      Shape others = right;
      others.insert(others.begin(), 7);
      expect_products_fit("FusedMatMul",
                          {{real(batched), real(others)}, {real({7, 2, 5})}, attributes}, 420);
    }
  }
}

TEST(Gradients, batches_that_were_broadcast_are_summed) {
  expect_products_fit("MatMul", {{real({4, 1, 2, 3}), real({7, 3, 5})}, {real({4, 7, 2, 5})}},
                      28 * 60);
  EXPECT_EQ(gradients_of("MatMul", {{real({4, 1, 2, 3}), real({7, 3, 5})}, {real({4, 7, 2, 5})}}),
            (Lines{
                "op/grad/0 = MatMul(op/grad/seed, p1) [4, 7, 2, 3]",
                "op/grad/0_sum = ReduceSum(op/grad/0) [4, 1, 2, 3]",
                "op/grad/1 = MatMul(p0, op/grad/seed) [4, 7, 3, 5]",
                "op/grad/1_sum = ReduceSum(op/grad/1) [7, 3, 5]",
            }));
}

TEST(Gradients, weights_that_serve_a_batch_get_one_product) {
  EXPECT_EQ(gradients_of("MatMul", {{real({4, 2, 3}), real({3, 5})}, {real({4, 2, 5})}}),
            (Lines{
                "op/grad/0 = MatMul(op/grad/seed, p1) [4, 2, 3]",
                "op/grad/1 = MatMulWeightGrad(op/grad/seed, p0) [3, 5]",
            }));
}

TEST(Gradients, vectors_are_matrices_of_one_row_or_column) {
  EXPECT_EQ(gradients_of("MatMul", {{real({2, 3}), real({3})}, {real({2})}}),
            (Lines{
                "op/grad/matrix = Reshape(op/grad/seed) [2, 1]",
                "op/grad/operand_right = Reshape(p1) [3, 1]",
                "op/grad/0 = MatMul(op/grad/matrix, op/grad/operand_right) [2, 3]",
                "op/grad/1 = MatMul(p0, op/grad/matrix) [3, 1]",
                "op/grad/1_sum = Reshape(op/grad/1) [3]",
            }));
}

TEST(Gradients, operands_that_are_listed_once_but_used_twice) {
  const TensorSpec square = real({3, 3});
  EXPECT_EQ(gradients_of("Add", {{square}, {square}}),
            (Lines{"p0/grad/sum = Add(op/grad/seed, op/grad/seed) [3, 3]"}));
  EXPECT_EQ(gradients_of("Mul", {{square}, {square}}),
            (Lines{"op/grad = SquareGrad(op/grad/seed, p0) [3, 3]"}));
  EXPECT_EQ(gradients_of("MatMul", {{square}, {square}}),
            (Lines{
                "op/grad/0 = MatMul(op/grad/seed, p0) [3, 3]",
                "op/grad/1 = MatMul(p0, op/grad/seed) [3, 3]",
                "p0/grad/sum = Add(op/grad/0, op/grad/1) [3, 3]",
            }));
  EXPECT_EQ(gradients_of("Concat", {{square}, {real({6, 3})}}),
            (Lines{"op/grad = ConcatGrad(op/grad/seed) [3, 3]"}));
}

TEST(Gradients, convolutions_have_a_gradient_each_for_input_weights_and_bias) {
  const OneOp model{{real({2, 4, 8, 8}), real({6, 2, 3, 3}), real({6})},
                    {real({2, 6, 6, 6})},
                    {{"group", std::int64_t{2}}}};
  EXPECT_EQ(gradients_of("Conv", model),
            (Lines{
                "op/grad/0 = ConvInputGrad(op/grad/seed, p1) [2, 4, 8, 8]",
                "op/grad/1 = ConvWeightGrad(op/grad/seed, p0) [6, 2, 3, 3]",
                "op/grad/2 = ReduceSum(op/grad/seed) [6]",
            }));
  const Graph graph = training_step(graph_of("Conv", model));
  const std::int64_t products = 2 * (2 * 6 * 6 * 6) * (2 * 3 * 3);
  EXPECT_EQ(graph.flops(*graph.find_op("op/grad/0")), products);
  EXPECT_EQ(graph.flops(*graph.find_op("op/grad/1")), products);
  EXPECT_EQ(graph.attributes(*graph.find_op("op/grad/1")).integer("group", 0), 2);
}

TEST(Gradients, pooling_reads_indices_where_there_are_some) {
  const TensorSpec in = real({1, 1, 4, 4});
  const TensorSpec out = real({1, 1, 2, 2});
  EXPECT_EQ(gradients_of("MaxPool", {{in}, {out}}),
            (Lines{"op/grad = MaxPoolGrad(op/grad/seed, p0, op) [1, 1, 4, 4]"}));
  EXPECT_EQ(gradients_of("MaxPool", {{in}, {out, whole({1, 1, 2, 2})}}),
            (Lines{"op/grad = MaxPoolGrad(op/grad/seed, op:1) [1, 1, 4, 4]"}));
}

TEST(Gradients, loss_without_probabilities_keeps_the_scores) {
  EXPECT_EQ(gradients_of("SoftmaxCrossEntropyLoss", {{real({2, 6}), whole({2})}, {real({})}}),
            (Lines{"op/grad = SoftmaxCrossEntropyLossGrad(op/grad/seed, p0, p1) [2, 6]"}));
}

TEST(Gradients, splitting_and_joining_undo_each_other) {
  const Attributes axis{{"axis", std::int64_t{1}}};
  EXPECT_EQ(gradients_of("Concat", {{real({2, 1}), real({2, 3})}, {real({2, 4})}, axis}),
            (Lines{"op/grad = Split(op/grad/seed) [2, 1] [2, 3]"}));
  // Only the first part of the split reaches a result.
  EXPECT_EQ(gradients_of("Split", {{real({2, 4})}, {real({2, 1}), real({2, 3})}, axis}),
            (Lines{"op/grad = SplitGrad(op/grad/seed) [2, 4]"}));
  const Graph turned = training_step(graph_of(
      "Transpose",
      {{real({2, 3, 4})}, {real({4, 2, 3})}, {{"perm", std::vector<std::int64_t>{2, 0, 1}}}}));
  EXPECT_EQ(turned.attributes(*turned.find_op("op/grad")),
            (Attributes{{"perm", std::vector<std::int64_t>{1, 2, 0}}}));
}

TEST(Gradients, casts_go_back_to_the_element_type_they_came_from) {
  GraphBuilder builder("mixed-precision");
  const auto w =
      builder.add({.name = "w", .type = "parameter"}, {{.shape = {4}, .dtype = DType::kFloat16}});
  builder.add({.name = "cast", .type = "Cast", .inputs = w}, {real({4})});
  const Graph graph = training_step(std::move(builder).build());
  const OpId back = *graph.find_op("cast/grad");
  EXPECT_EQ(op_text(graph, back), "cast/grad = Cast(cast/grad/seed) [4]");
  EXPECT_EQ(graph.dtype(graph.outputs(back)[0]), DType::kFloat16);
}

// As many as the operator has do count; a file may say otherwise.
TEST(Gradients, outputs_that_an_operator_does_not_have_pass_no_gradient) {
  for (const GradientRow& row : gradient_rows()) {
    if (row.rule == nullptr) continue;
    OneOp model = model_of(row.type);
    model.outputs.resize(9, real({2, 6}));
    GraphBuilder builder("many-outputs");
    const auto w = builder.add({.name = "w", .type = "parameter"}, {model.inputs[0]});
    OpSpec op{.name = "op", .type = std::string(row.type), .inputs = w};
    for (std::size_t i = 1; i < model.inputs.size(); ++i) {
      op.inputs.push_back(
          builder.add({.name = fmt::format("p{}", i), .type = "input"}, {model.inputs[i]})[0]);
    }
    op.attributes = model.attributes;
    const auto outputs = builder.add(op, model.outputs);
    builder.add({.name = "loss", .type = "ReduceSum", .inputs = {outputs[8]}}, {real({})});
    const Graph forward = std::move(builder).build();
    if (model.inputs[0].dtype != DType::kFloat32) continue;
    if (positions::contain(row.passes, 8) && positions::contain(row.differentiable, 0)) {
      EXPECT_TRUE(training_step(forward).find_op("w/update")) << row.type;
    } else {
      EXPECT_THROW(training_step(forward), Error) << row.type;
    }
  }
}

TEST(Gradients, ops_that_do_not_have_what_their_operator_takes_are_refused) {
  const auto expect_misfit = [](const std::string& type, const OneOp& model) {
    try {
      training_step(graph_of(type, model));
      ADD_FAILURE() << type;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(),
                fmt::format("op 'op': its inputs and outputs are not such as operator "
                            "'{}' takes and gives",
                            type));
    }
  };
  expect_misfit("Conv", {{real({2, 3, 4, 4})}, {real({2, 3, 4, 4})}});
  expect_misfit("MatMul", {{real({}), real({3, 4})}, {real({3, 4})}});
  expect_misfit("MatMul", {{real({2, 3}), real({3, 4})}, {real({4})}});
  expect_misfit("Add", {{real({2, 3}), real({3, 4})}, {real({2, 3})}});
  expect_misfit("Concat", {{real({2, 3}), real({3})}, {real({5, 3})}});
  expect_misfit("Reshape", {{real({2, 3})}, {real({5})}});
}

TEST(Gradients, recurrent_ops_keep_their_gates) {
  const Graph graph = training_step(graph_of("LSTM", model_of("LSTM")));
  const OpId op = *graph.find_op("op");
  ASSERT_EQ(graph.outputs(op).size(), 4U);
  EXPECT_EQ(op_text(graph, *graph.find_op("op/grad")),
            "op/grad = LSTMGrad(op/grad/seed, p0, p1, p2, p3, op, op:3) [2, 5, 8] [1, 12, 8] "
            "[1, 12, 3] [1, 24]");
  EXPECT_TRUE(std::ranges::equal(graph.shape(graph.outputs(op)[3]), Shape{2, 5, 1, 15}));
}

// What an interpreter could not know from their tensors.
TEST(Gradients, say_what_their_inputs_leave_open) {
  const Graph mean = training_step(graph_of("Mean", model_of("Mean")));
  EXPECT_EQ(mean.attributes(*mean.find_op("op/grad")).integer("count", 0), 2);

  const auto second_output_of = [](const std::string& type) {
    const OneOp model = model_of(type);
    GraphBuilder builder(type);
    OpSpec op{.name = "op", .type = type, .attributes = model.attributes};
    for (const TensorSpec& input : model.inputs) {
      const std::string name = fmt::format("p{}", op.inputs.size());
      op.inputs.push_back(builder.add({.name = name, .type = "parameter"}, {input})[0]);
    }
    const auto outputs = builder.add(op, model.outputs);
    builder.add({.name = "y", .type = "Relu", .inputs = {outputs[1]}}, {model.outputs[1]});
    return training_step(std::move(builder).build());
  };
  for (const char* type : {"Split", "LSTM"}) {
    const Graph graph = second_output_of(type);
    const Attributes& attributes = graph.attributes(*graph.find_op("op/grad"));
    EXPECT_TRUE(std::ranges::equal(attributes.integers("arrived"), Shape{1})) << type;
    if (std::string_view(type) == "LSTM") continue;
    EXPECT_TRUE(std::ranges::equal(attributes.integers("split"), Shape{2, 4}));
  }
}

TEST(Gradients, a_vector_on_the_right_serves_a_whole_batch) {
  const Lines lines = gradients_of("MatMul", {{real({2, 5, 3}), real({3})}, {real({2, 5})}});
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "op/grad/1_vector = Reshape(op/grad/1_sum) [3]");
}

}  // namespace
}  // namespace emplace
