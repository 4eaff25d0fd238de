#include <emplace/granularity.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/colocation.h"
#include "graph/graph_builder.h"
#include "graph/training.h"

#include "support/error_text.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Ops of one output of 4 bytes; tensor i is op i's.
class ModuleOps {
 public:
  TensorId add(OpSpec spec) {
    return builder_.add(std::move(spec), {{.shape = {1}, .dtype = DType::kFloat32}})[0];
  }
  TensorId parameter(const std::string& name) { return add({.name = name, .type = "parameter"}); }
  std::shared_ptr<const Graph> build() {
    return std::make_shared<const Graph>(std::move(builder_).build());
  }

 private:
  GraphBuilder builder_{"g"};
};

// Whether two ops, by name, must share a device.
bool together(const Graph& graph, const std::string& a, const std::string& b) {
  const Colocation groups = find_colocation(graph);
  return groups.group_of[*graph.find_op(a)] == groups.group_of[*graph.find_op(b)];
}

// Two blocks of two modules each.
std::shared_ptr<const Graph> two_blocks() {
  ModuleOps ops;
  TensorId x = ops.add({.name = "x", .type = "input"});
  for (const std::string block : {"block.0", "block.1"}) {
    for (const std::string part : {".a", ".b"}) {
      const std::string module = block + part;
      const TensorId w = ops.parameter(module + ".weight");
      x = ops.add({.name = module + ".mul", .type = "Mul", .inputs = {x, w}, .module = module});
      x = ops.add({.name = module + ".relu", .type = "Relu", .inputs = {x}, .module = module});
    }
  }
  return ops.build();
}

TEST(KeepWhole, joins_the_ops_of_a_module) {
  const auto whole = keep_whole(two_blocks(), Granularity::kModule);
  EXPECT_TRUE(together(*whole, "block.0.a.mul", "block.0.a.relu"));
  EXPECT_TRUE(together(*whole, "block.0.a.mul", "block.0.a.weight"));
  EXPECT_FALSE(together(*whole, "block.0.a.mul", "block.0.b.mul"));
  EXPECT_EQ(find_colocation(*whole).num_groups(), 4U) << "the input is with what reads it";
  EXPECT_EQ(find_colocation(*two_blocks()).num_groups(), 13U) << "as it was";
}

TEST(KeepWhole, joins_the_modules_of_a_layer) {
  const auto whole = keep_whole(two_blocks(), Granularity::kLayer);
  EXPECT_TRUE(together(*whole, "block.0.a.mul", "block.0.b.relu"));
  EXPECT_FALSE(together(*whole, "block.0.b.mul", "block.1.a.mul"));
  EXPECT_EQ(find_colocation(*whole).num_groups(), 2U);
}

TEST(KeepWhole, op_by_op_is_the_graph_itself) {
  const auto graph = two_blocks();
  EXPECT_EQ(keep_whole(graph, Granularity::kOp), graph);
}

TEST(KeepWhole, keeps_the_backward_pass_and_the_update_with_the_forward_pass) {
  const auto step =
      std::make_shared<const Graph>(training_step(*two_blocks(), {.optimizer = Optimizer::kAdam}));
  const auto whole = keep_whole(step, Granularity::kModule);
  EXPECT_EQ(find_colocation(*whole).num_groups(), 4U);
  for (OpId op = 0; op < whole->num_ops(); ++op) {
    const std::string name(whole->op_name(op));
    if (!name.starts_with("block.")) continue;
    EXPECT_TRUE(together(*whole, name, name.substr(0, 9) + ".mul")) << name;
  }
}

TEST(KeepWhole, a_view_at_a_module_s_beginning_does_not_join_it_to_the_one_before) {
  ModuleOps ops;
  const TensorId a = ops.add({.name = "a.op", .type = "mm", .module = "a"});
  const TensorId view =
      ops.add({.name = "b.view", .type = "Reshape", .inputs = {a}, .view = true, .module = "b"});
  ops.add({.name = "b.op", .type = "mm", .inputs = {view}, .module = "b"});
  const auto whole = keep_whole(ops.build(), Granularity::kModule);
  EXPECT_TRUE(together(*whole, "a.op", "b.view"));
  EXPECT_FALSE(together(*whole, "a.op", "b.op"));
}

TEST(KeepWhole, joins_modules_that_the_graph_keeps_together) {
  ModuleOps ops;
  ops.add({.name = "a.one", .type = "mm", .module = "a"});
  ops.add({.name = "a.two", .type = "mm", .module = "a", .colocate = "tied"});
  ops.add({.name = "b.one", .type = "mm", .module = "b", .colocate = "tied"});
  ops.add({.name = "b.two", .type = "mm", .module = "b"});
  const auto whole = keep_whole(ops.build(), Granularity::kModule);
  EXPECT_TRUE(together(*whole, "a.one", "b.two"));
}

TEST(KeepWhole, changes_nothing_else) {
  const auto graph = two_blocks();
  const auto whole = keep_whole(graph, Granularity::kModule);
  ASSERT_EQ(whole->num_ops(), graph->num_ops());
  EXPECT_EQ(whole->name(), graph->name());
  for (OpId op = 0; op < graph->num_ops(); ++op) {
    EXPECT_EQ(whole->op_name(op), graph->op_name(op));
    EXPECT_EQ(whole->module(op), graph->module(op));
    EXPECT_TRUE(std::ranges::equal(whole->inputs(op), graph->inputs(op)));
  }
}

TEST(KeepWhole, refuses_a_graph_without_modules) {
  ModuleOps ops;
  const TensorId a = ops.add({.name = "a", .type = "mm"});
  ops.add({.name = "b", .type = "mm", .inputs = {a}});
  const auto graph = ops.build();
  EXPECT_THAT(error_text([&] { keep_whole(graph, Granularity::kModule); }),
              AllOf(HasSubstr("graph 'g' names no modules"), HasSubstr("expected")));
}

TEST(Granularity, has_names) {
  for (const std::string name : {"op", "module", "layer"}) {
    EXPECT_EQ(granularity_name(parse_granularity(name)), name);
  }
  EXPECT_THAT(error_text([] { parse_granularity("modul"); }), HasSubstr("did you mean 'module'"));
}

}  // namespace
}  // namespace emplace
