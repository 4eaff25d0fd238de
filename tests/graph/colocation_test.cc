#include "graph/colocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

namespace emplace {
namespace {

using testing::ElementsAre;

// Ops of one output of one byte, added by name; tensor i is op i's.
class Ops {
 public:
  OpSpec spec(const std::string& name, std::vector<TensorId> inputs = {},
              const std::string& type = "compute") {
    OpSpec result;
    result.name = name;
    result.type = type;
    result.inputs = std::move(inputs);
    return result;
  }
  void add(const OpSpec& spec) { builder_.add(spec, {{.bytes = 1}}); }

  Colocation find() { return find_colocation(std::move(builder_).build()); }

 private:
  GraphBuilder builder_{"g"};
};

TEST(Colocation, leaves_unrelated_ops_alone) {
  Ops ops;
  ops.add(ops.spec("a"));
  ops.add(ops.spec("b", {0}));
  ops.add(ops.spec("c", {0, 1}));
  EXPECT_THAT(ops.find().group_of, ElementsAre(0U, 1U, 2U));
}

TEST(Colocation, keeps_a_chain_of_views_with_the_producer_of_the_first_input) {
  Ops ops;
  ops.add(ops.spec("a"));
  ops.add(ops.spec("b"));
  OpSpec first = ops.spec("v", {1, 0});  // shows b; a is only read
  first.view = true;
  ops.add(first);
  OpSpec second = ops.spec("w", {2});
  second.view = true;
  ops.add(second);
  ops.add(ops.spec("c", {3}));
  const Colocation found = ops.find();
  EXPECT_THAT(found.group_of, ElementsAre(0U, 1U, 1U, 1U, 2U));
  EXPECT_EQ(found.num_groups(), 3U);
  EXPECT_THAT(found.ops[1], ElementsAre(1U, 2U, 3U));
}

TEST(Colocation, keeps_an_update_with_its_parameter_and_not_with_its_gradient) {
  Ops ops;
  ops.add(ops.spec("w", {}, "parameter"));
  ops.add(ops.spec("state", {}, "buffer"));
  ops.add(ops.spec("gradient", {0}));
  OpSpec update = ops.spec("update", {2, 1, 0});
  update.phase = Phase::kUpdate;
  ops.add(update);
  EXPECT_THAT(ops.find().group_of, ElementsAre(0U, 1U, 2U, 0U));
}

TEST(Colocation, asks_the_phase_not_the_reader) {
  Ops ops;
  ops.add(ops.spec("w", {}, "parameter"));
  OpSpec backward = ops.spec("backward", {0});
  backward.phase = Phase::kBackward;
  ops.add(backward);
  EXPECT_THAT(ops.find().group_of, ElementsAre(0U, 1U));
}

TEST(Colocation, joins_names_and_what_they_join) {
  Ops ops;
  OpSpec a = ops.spec("a");
  a.colocate = "s";
  ops.add(a);
  OpSpec b = ops.spec("b");
  b.colocate = "t";
  ops.add(b);
  OpSpec c = ops.spec("c");
  c.colocate = "s";
  ops.add(c);
  OpSpec d = ops.spec("d", {1});  // a view of t's op that is in s: s and t are one
  d.colocate = "s";
  d.view = true;
  ops.add(d);
  ops.add(ops.spec("s"));  // an op's own name is not a colocation name
  const Colocation found = ops.find();
  EXPECT_THAT(found.group_of, ElementsAre(0U, 0U, 0U, 0U, 1U));
}

TEST(Colocation, does_not_confuse_colocation_names_with_types_and_modules) {
  Ops ops;
  OpSpec a = ops.spec("a", {}, "shared");
  a.module = "shared";
  ops.add(a);
  OpSpec b = ops.spec("b");
  b.colocate = "shared";
  ops.add(b);
  EXPECT_THAT(ops.find().group_of, ElementsAre(0U, 1U));
}

TEST(NumberGroups, numbers_by_the_lowest_op_whatever_the_labels) {
  const Colocation groups = number_groups({900, 5, 900, 0, 5});
  EXPECT_THAT(groups.group_of, ElementsAre(0U, 1U, 0U, 2U, 1U));
  EXPECT_THAT(groups.ops[0], ElementsAre(0U, 2U));
  EXPECT_THAT(groups.ops[1], ElementsAre(1U, 4U));
  EXPECT_THAT(groups.ops[2], ElementsAre(3U));
}

}  // namespace
}  // namespace emplace
