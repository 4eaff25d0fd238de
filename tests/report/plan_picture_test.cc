#include "report/plan_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace emplace {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Layers of a weight each, of which the last is wider; names with what XML does not like.
struct Stack {
  Stack() : graph(build()), descriptions(graph) {}

  static Graph build() {
    GraphBuilder builder("stack");
    const auto matrix = [](std::int64_t a, std::int64_t b) {
      return TensorSpec{.shape = {a, b}, .dtype = DType::kFloat32};
    };
    TensorId x = builder.add({.name = "x", .type = "input"}, {matrix(64, 32)})[0];
    for (int layer = 0; layer < 4; ++layer) {
      const std::string module = "net.layer." + std::to_string(layer);
      const std::int64_t wide = layer == 3 ? 48 : 32;
      const TensorId w = builder.add({.name = module + ".w", .type = "parameter", .module = module},
                                     {matrix(32, wide)})[0];
      x = builder.add(
          {.name = module + ".a<b>&", .type = "MatMul", .inputs = {x, w}, .module = module},
          {matrix(64, wide)})[0];
    }
    return std::move(builder).build();
  }

  // All products alike: by this variable (m, n, k), weights along this dimension.
  std::string draw(const std::vector<int>& factors, const Cuts& op, const Cuts& weight) const {
    const Cuts none(factors.size(), kUncut);
    Plan plan{.method = "by hand", .workers = Workers(factors), .tensors = {}, .ops = {}};
    for (OpId each = 0; each < graph.num_ops(); ++each) {
      plan.ops.push_back(graph.is_source(each) ? none : op);
    }
    for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
      const bool parameter = graph.role(graph.producer(tensor)) == OpRole::kParameter;
      plan.tensors.push_back(parameter ? weight : none);
    }
    return plan_picture(graph, descriptions, plan);
  }

  Graph graph;
  Descriptions descriptions;
};

TEST(PlanPicture, draws_layers_that_are_cut_alike_once) {
  const std::string svg = Stack().draw({2, 2}, {1, 1}, {1, 1});
  EXPECT_THAT(svg, HasSubstr("<svg xmlns"));
  EXPECT_THAT(svg, HasSubstr("net.layer.0 to net.layer.2 (3 alike)"));
  EXPECT_THAT(svg, HasSubstr(">net.layer.3<"));
  EXPECT_EQ(occurrences(svg, "class=\"cell weight\""), 1 + 2 * 2U) << "the legend, and two weights";
}

TEST(PlanPicture, cuts_the_dimension_that_the_plan_cuts) {
  const Stack stack;
  // Of two drawn weights, one dimension each, into four parts: three lines.
  EXPECT_EQ(occurrences(stack.draw({2, 2}, {1, 1}, {1, 1}), "class=\"cut\""), 2 * 3U);
  EXPECT_THAT(stack.draw({2, 2}, {1, 1}, {0, 0}), HasSubstr("<title>32 in 4 parts</title>"));
  EXPECT_THAT(stack.draw({2, 2}, {1, 1}, {1, 0}), HasSubstr("<title>48 in 2 parts</title>"));
  const std::string whole = stack.draw({2, 2}, {kUncut, kUncut}, {kUncut, kUncut});
  EXPECT_THAT(whole, Not(HasSubstr("class=\"cut\"")));
  EXPECT_THAT(whole, HasSubstr(">all, all<"));
  EXPECT_THAT(whole, HasSubstr(">x4<")) << "everybody has the same";
}

TEST(PlanPicture, says_where_partial_results_are_added_up) {
  EXPECT_THAT(Stack().draw({2}, {2}, {0}), HasSubstr(">sum k<"));
}

TEST(PlanPicture, is_xml_whatever_ops_are_called) {
  const std::string svg = Stack().draw({2}, {0}, {0});
  EXPECT_THAT(svg, HasSubstr("a&lt;b&gt;&amp;"));
  EXPECT_THAT(svg, Not(HasSubstr("a<b>")));
}

}  // namespace
}  // namespace emplace
