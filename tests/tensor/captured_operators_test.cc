#include "tensor/captured_operators.h"

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace emplace {
namespace {

const TensorSpec kMatrix{.shape = {4, 8}, .dtype = DType::kFloat32};
const TensorSpec kMask{.shape = {4, 8}, .dtype = DType::kBool};

// One op on one input, beside another that says its attributes, as captures do.
Graph captured(std::string type, const TensorSpec& input, const TensorSpec& output,
               Attributes attributes = {}) {
  GraphBuilder builder("captured");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {input})[0];
  builder.add(
      {.name = "op", .type = std::move(type), .inputs = {x}, .attributes = std::move(attributes)},
      {output});
  const TensorId y = builder.add({.name = "y", .type = "input"}, {kMatrix})[0];
  builder.add({.name = "softmax",
               .type = "_softmax",
               .inputs = {y},
               .attributes = {{"axis", std::int64_t{-1}}}},
              {kMatrix});
  return std::move(builder).build();
}

std::optional<OpId> find_type(const Graph& graph, std::string_view type) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.type(op) == type) return op;
  }
  return std::nullopt;
}

TEST(CapturedOperators, hardtanh_has_the_bounds_that_captures_leave_out) {
  const Graph graph = translate_captured(captured("hardtanh", kMatrix, kMatrix)).graph;
  const auto clip = find_type(graph, "Clip");
  ASSERT_TRUE(clip);
  EXPECT_EQ(graph.attributes(*clip).real("min", 0), -1);
  EXPECT_EQ(graph.attributes(*clip).real("max", 0), 1);
  const Graph other =
      translate_captured(captured("hardtanh", kMatrix, kMatrix, {{"max_val", 6.0}})).graph;
  EXPECT_EQ(other.attributes(find_type(other, "Clip").value()).real("min", 0), -1);
  EXPECT_EQ(other.attributes(find_type(other, "Clip").value()).real("max", 0), 6);
}

TEST(CapturedOperators, numbers_beside_masks_are_numbers) {
  const TensorSpec numbers{.shape = {4, 8}, .dtype = DType::kInt64};
  const Graph graph =
      translate_captured(captured("mul", kMask, numbers, {{"other", std::int64_t{-10'000}}})).graph;
  const auto product = find_type(graph, "Mul");
  ASSERT_TRUE(product);
  EXPECT_EQ(graph.dtype(graph.inputs(*product)[1]), DType::kInt64);
}

// What fused attention becomes where it is taken apart: rows that are all masked give zeros.
TEST(CapturedOperators, a_safe_softmax_is_divided_as_one) {
  const Graph graph =
      translate_captured(captured("_safe_softmax", kMatrix, kMatrix, {{"axis", std::int64_t{-1}}}))
          .graph;
  EXPECT_FALSE(find_type(graph, "_safe_softmax"));
  EXPECT_TRUE(find_type(graph, "Softmax"));
}

TEST(CapturedOperators, views_as_another_type_stay) {
  const TensorSpec bits{.shape = {4, 8}, .dtype = DType::kInt32};
  EXPECT_TRUE(find_type(translate_captured(captured("view", kMatrix, bits)).graph, "view"));
}

TEST(CapturedOperators, sums_over_no_axes_are_over_all) {
  const TensorSpec number{.shape = std::vector<std::int64_t>{}, .dtype = DType::kFloat32};
  const Graph graph =
      translate_captured(captured("sum", kMatrix, number, {{"axes", std::vector<std::int64_t>{}}}))
          .graph;
  const auto sum = find_type(graph, "ReduceSum");
  ASSERT_TRUE(sum);
  EXPECT_TRUE(graph.attributes(*sum).integers("axes").empty());
}

}  // namespace
}  // namespace emplace
