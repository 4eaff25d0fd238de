#include "graph/in_place.h"

#include <gtest/gtest.h>

#include "support/timed_graph.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

TensorId sum(TimedGraph& graph, std::vector<TensorId> inputs, Bytes bytes = 1000,
             Phase phase = Phase::kBackward) {
  return graph.add({.name = "sum", .type = "Add", .inputs = std::move(inputs), .phase = phase}, 1,
                   bytes);
}

// What the op named "sum" writes over.
TensorId over(TimedGraph& timed, InPlace mode = InPlace::kSums) {
  const auto graph = timed.build();
  return find_overwritten(*graph, mode)[*graph->find_op("sum")];
}

TEST(InPlaceRule, a_sum_of_gradients_takes_the_place_of_its_first_term) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 1, {});
  const TensorId b = graph.op("b", 1, {});
  sum(graph, {a, b});
  EXPECT_EQ(over(graph), a);
}

TEST(InPlaceRule, or_of_the_next_where_somebody_else_reads_the_first) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 1, {});
  const TensorId b = graph.op("b", 1, {});
  graph.op("reader", 1, {a});
  sum(graph, {a, b});
  EXPECT_EQ(over(graph), b);
}

TEST(InPlaceRule, forward_sums_are_elementwise_ops_like_others) {
  for (const InPlace mode : {InPlace::kNone, InPlace::kSums, InPlace::kAll}) {
    TimedGraph graph;
    const TensorId a = graph.op("a", 1, {});
    sum(graph, {a, graph.op("b", 1, {})}, 1000, Phase::kForward);
    EXPECT_EQ(over(graph, mode), mode == InPlace::kAll ? a : kNotOverwritten);
  }
}

TEST(InPlaceRule, nothing_of_another_size_or_of_a_source_is_written_over) {
  TimedGraph other_size;
  sum(other_size, {other_size.op("a", 1, {}, 500)});
  EXPECT_EQ(over(other_size), kNotOverwritten);
  for (const char* type : {"parameter", "buffer", "input", "constant"}) {
    TimedGraph graph;
    sum(graph, {graph.source("s", type)});
    EXPECT_EQ(over(graph), kNotOverwritten) << type;
  }
}

TEST(InPlaceRule, views_are_looked_through) {
  TimedGraph graph;
  const TensorId seen = graph.view("view", graph.op("a", 1, {}));
  sum(graph, {seen});
  EXPECT_EQ(over(graph), seen);

  TimedGraph two;
  const TensorId a = two.op("a", 1, {});
  two.op("reader", 1, {two.view("other", a)});
  sum(two, {two.view("view", a)});
  EXPECT_EQ(over(two), kNotOverwritten) << "another view of it is read";

  TimedGraph unread;
  const TensorId b = unread.op("a", 1, {});
  unread.view("other", b);
  sum(unread, {b});
  EXPECT_EQ(over(unread), kNotOverwritten) << "a view that nobody reads may come later";
}

TEST(InPlaceRule, of_a_recurrent_network_every_sum_of_gradients) {
  const Graph graph =
      zoo::build_model("stacked-rnn:layers=2,hidden=8,sequence=5,input=8,classes=3,batch=2");
  const auto found = find_overwritten(graph, InPlace::kSums);
  int sums = 0;
  int in_place = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) != Phase::kBackward || graph.type(op) != "Add") continue;
    ++sums;
    in_place += found[op] != kNotOverwritten ? 1 : 0;
  }
  EXPECT_GT(sums, 8);
  EXPECT_EQ(in_place, sums);
}

}  // namespace
}  // namespace emplace
