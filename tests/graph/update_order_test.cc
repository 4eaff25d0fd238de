// An update overwrites its parameter, so it comes after all that read it.
#include "graph/update_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"
#include "graph/training.h"

#include "zoo/registry.h"

namespace emplace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TensorSpec one_float() {
  TensorSpec spec;
  spec.shape = {1};
  spec.dtype = DType::kFloat32;
  return spec;
}

OpSpec op_of(std::string name, Phase phase, std::vector<TensorId> inputs) {
  OpSpec spec;
  spec.name = std::move(name);
  spec.type = "Some";
  spec.phase = phase;
  spec.inputs = std::move(inputs);
  return spec;
}

std::vector<std::string> after_of(const Graph& graph, std::string_view name) {
  std::vector<std::string> names;
  for (const OpId op : graph.after(*graph.find_op(name))) names.emplace_back(graph.op_name(op));
  return names;
}

// y = f(w, x), loss = g(y); dy, then dx = h(dy, w) and dw = k(dy, x).
GraphBuilder small_step() {
  GraphBuilder builder("step");
  const auto add = [&](const OpSpec& spec) { return builder.add(spec, {one_float()})[0]; };
  const TensorId w = add({.name = "w", .type = "parameter"});
  const TensorId x = add({.name = "x", .type = "input"});
  const TensorId y = add(op_of("y", Phase::kForward, {w, x}));
  const TensorId loss = add(op_of("loss", Phase::kForward, {y}));
  add(op_of("norm", Phase::kForward, {w}));  // of the weight, for a display
  const TensorId dy = add(op_of("dy", Phase::kBackward, {loss}));
  add(op_of("dx", Phase::kBackward, {dy, w}));
  const TensorId dw = add(op_of("dw", Phase::kBackward, {dy, x}));
  builder.add_op(op_of("update", Phase::kUpdate, {w, dw}));
  return builder;
}

TEST(UpdateOrder, an_update_waits_for_readers_that_nothing_else_puts_before_it) {
  const Graph graph = std::move(small_step()).build();
  // y comes before the loss, and with it before dw.
  EXPECT_THAT(after_of(graph, "update"), ElementsAre("norm", "dx"));
}

TEST(UpdateOrder, readers_through_views_count) {
  GraphBuilder builder("views");
  const TensorId w = builder.add({.name = "w", .type = "parameter"}, {one_float()})[0];
  OpSpec view = op_of("view", Phase::kForward, {w});
  view.view = true;
  const TensorId seen = builder.add(view, {one_float()})[0];
  const TensorId dw = builder.add(op_of("dw", Phase::kBackward, {seen}), {one_float()})[0];
  builder.add(op_of("reader", Phase::kBackward, {seen}), {one_float()});
  builder.add_op(op_of("update", Phase::kUpdate, {w, dw}));
  const Graph graph = std::move(builder).build();
  const auto names = after_of(graph, "update");
  EXPECT_THAT(names, testing::Contains("reader"));
}

TEST(UpdateOrder, what_comes_later_reads_the_updated_parameter) {
  GraphBuilder builder("later");
  const TensorId w = builder.add({.name = "w", .type = "parameter"}, {one_float()})[0];
  const TensorId dw = builder.add({.name = "dw", .type = "input"}, {one_float()})[0];
  builder.add_op(op_of("update", Phase::kUpdate, {w, dw}));
  builder.add(op_of("reader", Phase::kForward, {w}), {one_float()});
  EXPECT_THAT(after_of(std::move(builder).build(), "update"), IsEmpty());
}

// A part of the weight that an update changes through a view: whoever reads the weight comes first.
TEST(UpdateOrder, updates_through_views_come_after_readers) {
  GraphBuilder builder("part");
  const TensorId w = builder.add({.name = "w", .type = "parameter"}, {one_float()})[0];
  const TensorId dw = builder.add({.name = "dw", .type = "input"}, {one_float()})[0];
  builder.add(op_of("reader", Phase::kForward, {w}), {one_float()});
  OpSpec part = op_of("part", Phase::kBackward, {w});
  part.view = true;
  const TensorId slice = builder.add(part, {one_float()})[0];
  builder.add_op(op_of("update", Phase::kUpdate, {slice, dw}));
  EXPECT_THAT(after_of(std::move(builder).build(), "update"), ElementsAre("reader"));
}

// Whatever the model: there is a path from every reader to the update.
bool reaches(const Graph& graph, OpId from, OpId to) {
  std::vector<std::uint8_t> reached(graph.num_ops(), 0);
  reached[from] = 1;
  for (OpId op = from + 1; op <= to; ++op) {
    for (const TensorId tensor : graph.inputs(op)) {
      if (reached[graph.producer(tensor)] != 0) reached[op] = 1;
    }
    for (const OpId before : graph.after(op)) {
      if (reached[before] != 0) reached[op] = 1;
    }
  }
  return reached[to] != 0;
}

TEST(UpdateOrder, holds_for_training_steps_of_the_zoo) {
  for (const char* name :
       {"resnet-50:batch=1,image=32", "gnmt-2:batch=1,hidden=8,sequence=3,vocabulary=11",
        "gpt2-small:batch=1,sequence=4,layers=2,hidden=8,heads=2,vocabulary=17,"
        "positions=8"}) {
    const Graph graph = zoo::build_model(name);
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.phase(op) != Phase::kUpdate || graph.is_source(op)) continue;
      for (const OpId reader : graph.consumers(graph.inputs(op)[0])) {
        if (reader != op && !graph.is_view(reader)) {
          EXPECT_TRUE(reaches(graph, reader, op)) << name << " " << graph.op_name(op);
        }
      }
    }
  }
}

}  // namespace
}  // namespace emplace
