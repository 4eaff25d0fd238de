#include "tensor/describe.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "tensor/tdl/definition.h"

#include "zoo/registry.h"

namespace emplace {
namespace {

using tdl::Description;
using tdl::Signature;
using ::testing::UnorderedElementsAre;

using Integers = std::vector<std::int64_t>;

std::set<std::string> divisible_names(const Description& description) {
  std::set<std::string> names;
  for (const tdl::VariableId v : description.divisible()) {
    names.insert(description.variables[v].name);
  }
  return names;
}

std::set<std::string> reduction_names(const Description& description) {
  std::set<std::string> names;
  for (const tdl::VariableId v : description.divisible()) {
    if (description.is_reduction(v)) names.insert(description.variables[v].name);
  }
  return names;
}

Description described(const Signature& op) {
  const auto description = describe(op);
  EXPECT_TRUE(description.has_value()) << op.type;
  return description.value_or(Description{});
}

TEST(Describe, a_product_has_two_outputs_dimensions_and_a_reduction) {
  const Description product = described(
      {.type = "MatMul", .attributes = {}, .inputs = {{4, 6}, {6, 8}}, .outputs = {{4, 8}}});
  EXPECT_THAT(divisible_names(product), UnorderedElementsAre("m", "n", "k"));
  EXPECT_THAT(reduction_names(product), UnorderedElementsAre("k"));
  EXPECT_EQ(text(product), "out0[m, n] = sum k. f(in0[m, k], in1[k, n])");
}

TEST(Describe, a_convolution_needs_a_halo_and_says_how_its_parts_are_padded) {
  const Signature op{.type = "Conv",
                     .attributes = {{"pads", Integers{1, 1}}},
                     .inputs = {{2, 4, 8}, {6, 4, 3}},
                     .outputs = {{2, 6, 8}}};
  const Description conv = described(op);
  EXPECT_THAT(divisible_names(conv), UnorderedElementsAre("b", "o", "c", "y0"));
  EXPECT_THAT(reduction_names(conv), UnorderedElementsAre("c"));
  tdl::Region box;
  for (const tdl::Variable& variable : conv.variables) {
    box.push_back(variable.name == "y0" ? tdl::Interval{0, 4} : tdl::Interval{0, variable.extent});
  }
  const tdl::Piece piece = piece_of(conv, box, op.inputs, op.outputs, op.attributes);
  EXPECT_EQ(piece.inputs[0][2], (tdl::Interval{0, 5}));  // one element of the other half
  EXPECT_EQ(piece.outputs[0][2], (tdl::Interval{0, 4}));
  EXPECT_THAT(piece.attributes.integers("pads"), ::testing::ElementsAre(1, 0));
}

// The gradient's description follows from the convolution's: x = 2 y + k - 1 makes
// y = (x - k + 1) / 2.
TEST(Describe, the_gradient_of_a_convolution_follows_from_it) {
  const Attributes attributes{{"pads", Integers{1, 1}}, {"strides", Integers{2}}};
  const Description input = described({.type = "ConvInputGrad",
                                       .attributes = attributes,
                                       .inputs = {{2, 6, 4}, {6, 4, 3}},
                                       .outputs = {{2, 4, 8}}});
  EXPECT_THAT(divisible_names(input), UnorderedElementsAre("b", "o", "c", "y0'"));
  EXPECT_THAT(reduction_names(input), UnorderedElementsAre("o"));
  const Description weight = described({.type = "ConvWeightGrad",
                                        .attributes = attributes,
                                        .inputs = {{2, 6, 4}, {2, 4, 8}},
                                        .outputs = {{6, 4, 3}}});
  EXPECT_THAT(reduction_names(weight), UnorderedElementsAre("b", "y0"));
}

TEST(Describe, groups_are_divided_as_a_whole) {
  const Description conv = described({.type = "Conv",
                                      .attributes = {{"group", std::int64_t{2}}},
                                      .inputs = {{2, 4, 8}, {6, 2, 3}},
                                      .outputs = {{2, 6, 6}}});
  EXPECT_THAT(divisible_names(conv), UnorderedElementsAre("g", "b", "y0"));
}

// Examples of two dimensions, and their gradients, look like weights.
TEST(Describe, what_is_done_by_example_tells_examples_from_weights) {
  const Attributes groups{{"num_groups", std::int64_t{4}}};
  const auto norm = [&](const Shape& x, bool gradient) {
    const Shape c{x[1]};
    return gradient ? describe({.type = "GroupNormalizationGrad",
                                .attributes = groups,
                                .inputs = {x, x, c},
                                .outputs = {x, c, c}})
                    : describe({.type = "GroupNormalization",
                                .attributes = groups,
                                .inputs = {x, c, c},
                                .outputs = {x}});
  };
  for (const bool gradient : {false, true}) {
    EXPECT_TRUE(norm({8, 64, 7}, gradient));
    EXPECT_FALSE(norm({8, 64}, gradient));
  }
}

// Attention whose weights of queries, keys and values are one matrix.
TEST(Describe, masks_of_packed_attention_are_not_taken_for_weights) {
  const Attributes heads{{"num_heads", std::int64_t{4}}};
  Attributes no_bias = heads;
  no_bias.set("omitted_inputs", Integers{2});
  const Shape x{4, 6, 16}, weights{16, 48}, bias{48}, mask{4, 6};
  const auto forward = [&](const std::vector<Shape>& inputs, const Attributes& attributes) {
    return describe(
        {.type = "Attention", .attributes = attributes, .inputs = inputs, .outputs = {x}});
  };
  const auto backward = [&](std::vector<Shape> inputs, const Attributes& attributes) {
    inputs.insert(inputs.begin(), x);
    inputs.push_back(x);
    return describe({.type = "AttentionGrad",
                     .attributes = attributes,
                     .inputs = inputs,
                     .outputs = {x, weights}});
  };
  EXPECT_TRUE(forward({x, weights, bias}, heads));
  EXPECT_TRUE(backward({x, weights, bias}, heads));
  EXPECT_FALSE(forward({x, weights, bias, mask}, heads));
  EXPECT_FALSE(backward({x, weights, bias, mask}, heads));
  EXPECT_FALSE(forward({x, weights, mask}, no_bias));
  EXPECT_FALSE(backward({x, weights, mask}, no_bias));
}

TEST(Describe, a_softmax_takes_rows_whole) {
  const Description softmax =
      described({.type = "Softmax", .attributes = {}, .inputs = {{4, 6}}, .outputs = {{4, 6}}});
  EXPECT_THAT(divisible_names(softmax), UnorderedElementsAre("d0"));
  EXPECT_FALSE(softmax.is_elementwise());
}

// [2, 12] as [2, 3, 4]: a part of the threes is one interval, a part of the fours is not.
TEST(Describe, a_reshape_divides_leading_digits) {
  const Description reshape =
      described({.type = "Reshape", .attributes = {}, .inputs = {{2, 12}}, .outputs = {{2, 3, 4}}});
  EXPECT_THAT(divisible_names(reshape), UnorderedElementsAre("d0", "d1"));
  const Description odd = described(
      {.type = "Reshape", .attributes = {}, .inputs = {{2, 6, 2}}, .outputs = {{2, 4, 3}}});
  EXPECT_THAT(divisible_names(odd), UnorderedElementsAre("d0"));
}

TEST(Describe, elementwise_operators_are_known_by_their_indices) {
  EXPECT_TRUE(
      described({.type = "Add", .attributes = {}, .inputs = {{4, 6}, {6}}, .outputs = {{4, 6}}})
          .is_elementwise());
  EXPECT_FALSE(described({.type = "ReduceSum",
                          .attributes = {{"axes", Integers{0}}},
                          .inputs = {{4, 6}},
                          .outputs = {{1, 6}}})
                   .is_elementwise());
}

TEST(Describe, what_is_not_known_has_no_description) {
  EXPECT_FALSE(describe({.type = "Mystery", .attributes = {}, .inputs = {{4}}, .outputs = {{4}}}));
  EXPECT_FALSE(describe(
      {.type = "MatMul", .attributes = {}, .inputs = {{4, 6}, {5, 8}}, .outputs = {{4, 8}}}));
}

// Every op of the zoo but those that only look at shapes or make numbers.
TEST(Describe, knows_the_zoos_operators) {
  std::set<std::string> unknown;
  for (const zoo::ModelInfo& info : zoo::models()) {
    for (const char* training : {"true", "false"}) {
      const Graph graph = info.build({{"batch", "4"}, {"training", training}}, {});
      const Descriptions descriptions(graph);
      for (OpId op = 0; op < graph.num_ops(); ++op) {
        if (!graph.is_source(op) && descriptions[op] == nullptr) unknown.emplace(graph.type(op));
      }
    }
  }
  // Divided into their parts before they are described (tensor/decompose.h).
  unknown.erase("Split");
  unknown.erase("BatchNormalizationGrad");
  unknown.erase("ConstantOfShape");  // numbers from nothing
  EXPECT_THAT(unknown, ::testing::IsEmpty());
}

}  // namespace
}  // namespace emplace
