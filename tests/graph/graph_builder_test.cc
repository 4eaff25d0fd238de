// What GraphBuilder makes, and every way in which it refuses: the message names the op (or tensor)
// and the field.
#include "graph/graph_builder.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

OpSpec op(const std::string& name, std::vector<TensorId> inputs = {},
          std::vector<TensorId> outputs = {}) {
  OpSpec spec;
  spec.name = name;
  spec.type = "compute";
  spec.inputs = std::move(inputs);
  spec.outputs = std::move(outputs);
  return spec;
}

// The message of the error with which building what `fill` adds ends.
std::string refusal(const std::function<void(GraphBuilder&)>& fill) {
  GraphBuilder builder("broken");
  try {
    fill(builder);
    std::move(builder).build();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

// Adds t0 produced by "a", then an op "b" that reads it and that `change` spoils.
std::string refusal_of_op(const std::function<void(OpSpec&)>& change) {
  return refusal([&](GraphBuilder& builder) {
    builder.add(op("a"), {{.bytes = 8}});
    OpSpec spec = op("b", {0});
    change(spec);
    builder.add_op(spec);
  });
}

TEST(GraphBuilder, keeps_everything_that_an_op_says) {
  GraphBuilder builder("g", "made by hand");
  const TensorId x = builder.add_tensor({.shape = {2, 3}, .dtype = DType::kFloat16});
  const TensorId y = builder.add_tensor({.bytes = 100, .memory_bytes = 7});
  builder.add_op({.name = "x", .type = "parameter", .outputs = {x}});
  OpSpec spec = op("f", {x, x}, {y});
  spec.phase = Phase::kBackward;
  spec.flops = 12;
  spec.bytes_moved = 34;
  spec.time_us = {{"p100", {412, -1}}};
  spec.persistent_bytes = 5;
  spec.temp_bytes = 6;
  spec.view = true;
  spec.module = "encoder.0";
  spec.after = {"x", "x"};
  spec.colocate = "s";
  spec.devices = {"gpu0", "p100"};
  builder.add_op(spec);
  const Graph graph = std::move(builder).build();

  EXPECT_EQ(graph.name(), "g");
  EXPECT_EQ(graph.source(), "made by hand");
  EXPECT_EQ(graph.num_ops(), 2U);
  EXPECT_EQ(graph.num_tensors(), 2U);
  EXPECT_EQ(graph.num_edges(), 1U);
  EXPECT_EQ(graph.role(0), OpRole::kParameter);
  EXPECT_TRUE(graph.is_source(0));
  EXPECT_FALSE(graph.flops(0).has_value());
  EXPECT_EQ(graph.op_name(1), "f");
  EXPECT_EQ(graph.find_op("f"), OpId{1});
  EXPECT_EQ(graph.find_op("g"), std::nullopt);
  EXPECT_EQ(graph.type(1), "compute");
  EXPECT_THAT(graph.inputs(1), ElementsAre(x, x));
  EXPECT_THAT(graph.outputs(1), ElementsAre(y));
  EXPECT_THAT(graph.after(1), ElementsAre(0U));
  EXPECT_EQ(graph.phase(1), Phase::kBackward);
  EXPECT_TRUE(graph.is_view(1));
  EXPECT_EQ(graph.flops(1), 12);
  EXPECT_EQ(graph.bytes_moved(1), 34);
  EXPECT_EQ(graph.persistent_bytes(1), 5);
  EXPECT_EQ(graph.temp_bytes(1), 6);
  EXPECT_EQ(graph.module(1), "encoder.0");
  EXPECT_EQ(graph.colocate(1), "s");
  ASSERT_EQ(graph.measured_times(1).size(), 1U);
  EXPECT_EQ(graph.strings().get(graph.measured_times(1)[0].device), "p100");
  EXPECT_EQ(graph.measured_times(1)[0].microseconds, (Decimal{412, -1}));
  ASSERT_EQ(graph.allowed_devices(1).size(), 2U);
  EXPECT_EQ(graph.strings().get(graph.allowed_devices(1)[1]), "p100");
}

TEST(GraphBuilder, sizes_tensors_by_shape_and_dtype_or_by_bytes) {
  GraphBuilder builder("g");
  builder.add(op("a"), {{.shape = {2, 3}, .dtype = DType::kFloat32},
                        {.shape = {}, .dtype = DType::kInt64},
                        {.shape = {5}, .dtype = DType::kInt4},
                        {.shape = {7, 0}, .dtype = DType::kFloat32},
                        {.bytes = 100},
                        {.bytes = 100, .memory_bytes = 0}});
  const Graph graph = std::move(builder).build();
  EXPECT_EQ(graph.bytes(0), 24);
  EXPECT_EQ(graph.memory_bytes(0), 24);
  EXPECT_TRUE(graph.has_shape(0));
  EXPECT_THAT(graph.shape(0), ElementsAre(2, 3));
  EXPECT_EQ(graph.bytes(1), 8);
  EXPECT_EQ(graph.bytes(2), 3);  // 20 bits
  EXPECT_EQ(graph.bytes(3), 0);
  EXPECT_FALSE(graph.has_shape(4));
  EXPECT_EQ(graph.memory_bytes(4), 100);
  EXPECT_EQ(graph.bytes(5), 100);
  EXPECT_EQ(graph.memory_bytes(5), 0);
}

TEST(GraphBuilder, lists_each_reader_of_a_tensor_once_and_in_order) {
  GraphBuilder builder("g");
  const TensorId t = builder.add(op("a"), {{.bytes = 1}, {.bytes = 1}})[0];
  builder.add_op(op("b", {t, t}));
  builder.add_op(op("c", {t + 1, t, t + 1, t}));
  builder.add_op(op("d"));
  const Graph graph = std::move(builder).build();
  EXPECT_EQ(graph.producer(t), 0U);
  EXPECT_THAT(graph.consumers(t), ElementsAre(1U, 2U));
  EXPECT_THAT(graph.consumers(t + 1), ElementsAre(2U));
  EXPECT_THAT(graph.inputs(3), IsEmpty());
}

TEST(GraphBuilder, gives_roles_by_type) {
  EXPECT_EQ(role_of_type("parameter"), OpRole::kParameter);
  EXPECT_EQ(role_of_type("buffer"), OpRole::kBuffer);
  EXPECT_EQ(role_of_type("input"), OpRole::kInput);
  EXPECT_EQ(role_of_type("constant"), OpRole::kConstant);
  EXPECT_EQ(role_of_type("Parameter"), OpRole::kCompute);
}

TEST(GraphBuilder, refuses_an_empty_graph) {
  EXPECT_THAT(refusal([](GraphBuilder&) {}), HasSubstr("no ops"));
}

TEST(GraphBuilder, refuses_tensors_of_both_forms_or_none) {
  const auto tensor = [](const TensorSpec& spec) {
    return refusal([&](GraphBuilder& builder) { builder.add_tensor(spec); });
  };
  EXPECT_THAT(tensor({.shape = {1}, .dtype = DType::kInt8, .bytes = 1}),
              AllOf(HasSubstr("tensor 0"), HasSubstr("both bytes and a dtype")));
  EXPECT_THAT(tensor({.shape = {1}}), AllOf(HasSubstr("tensor 0"), HasSubstr("neither")));
}

TEST(GraphBuilder, refuses_sizes_that_are_negative_or_too_large) {
  const auto tensor = [](const TensorSpec& spec) {
    return refusal([&](GraphBuilder& builder) {
      builder.add_tensor({.bytes = 1});
      builder.add_tensor(spec);
    });
  };
  EXPECT_THAT(tensor({.bytes = -1}), AllOf(HasSubstr("tensor 1: bytes"), HasSubstr("negative")));
  EXPECT_THAT(tensor({.bytes = 1, .memory_bytes = -2}),
              AllOf(HasSubstr("tensor 1: memory_bytes"), HasSubstr("-2")));
  EXPECT_THAT(tensor({.bytes = (1LL << 60) + 1}), HasSubstr("tensor 1: bytes"));
  EXPECT_THAT(tensor({.shape = {3, -4}, .dtype = DType::kInt8}),
              AllOf(HasSubstr("tensor 1: shape"), HasSubstr("-4")));
  EXPECT_THAT(tensor({.shape = {1LL << 40, 1LL << 40}, .dtype = DType::kInt8}),
              AllOf(HasSubstr("tensor 1: shape"), HasSubstr("overflows")));
}

TEST(GraphBuilder, refuses_ops_with_bad_numbers) {
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.flops = -1; }), HasSubstr("op 'b': flops"));
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.bytes_moved = -1; }),
              HasSubstr("op 'b': bytes_moved"));
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.persistent_bytes = -1; }),
              HasSubstr("op 'b': persistent_bytes"));
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.temp_bytes = -1; }),
              HasSubstr("op 'b': temp_bytes"));
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) {
                spec.time_us = {{"p100", {-5, -1}}};
              }),
              AllOf(HasSubstr("op 'b': time_us"), HasSubstr("p100"), HasSubstr("negative")));
}

TEST(GraphBuilder, refuses_ops_without_a_name_or_type_and_names_used_twice) {
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.name = ""; }), HasSubstr("op 1: name"));
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.type = ""; }), HasSubstr("op 'b': type"));
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.name = "a"; }),
              AllOf(HasSubstr("op 'a': name"), HasSubstr("twice")));
}

TEST(GraphBuilder, refuses_tensors_that_do_not_exist) {
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.inputs = {9}; }),
              AllOf(HasSubstr("op 'b': inputs"), HasSubstr("no tensor 9")));
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.outputs = {9}; }),
              AllOf(HasSubstr("op 'b': outputs"), HasSubstr("no tensor 9")));
}

TEST(GraphBuilder, refuses_a_tensor_with_two_producers_or_none) {
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.outputs = {0}; }),
              AllOf(HasSubstr("op 'b': outputs"), HasSubstr("tensor 0"), HasSubstr("'a'")));
  const auto twice = [](GraphBuilder& builder) {
    const TensorId t = builder.add_tensor({.bytes = 1});
    builder.add_op(op("a", {}, {t, t}));
  };
  EXPECT_THAT(refusal(twice), AllOf(HasSubstr("op 'a': outputs"), HasSubstr("tensor 0")));
  const auto unread = [](GraphBuilder& builder) {
    builder.add_tensor({.bytes = 1});
    builder.add_op(op("a"));
  };
  EXPECT_THAT(refusal(unread), AllOf(HasSubstr("tensor 0"), HasSubstr("no op produces")));
  const auto read = [](GraphBuilder& builder) {
    builder.add_op(op("a", {builder.add_tensor({.bytes = 1})}));
  };
  EXPECT_THAT(refusal(read), AllOf(HasSubstr("op 'a': inputs"), HasSubstr("tensor 0")));
}

TEST(GraphBuilder, refuses_a_view_of_nothing) {
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) {
                spec.inputs = {};
                spec.view = true;
              }),
              HasSubstr("op 'b': view"));
}

TEST(GraphBuilder, refuses_control_dependencies_on_itself_on_nothing_and_on_later_ops) {
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.after = {"b"}; }),
              AllOf(HasSubstr("op 'b': after"), HasSubstr("itself")));
  EXPECT_THAT(refusal_of_op([](OpSpec& spec) { spec.after = {"nowhere"}; }),
              AllOf(HasSubstr("op 'b': after"), HasSubstr("'nowhere'")));
  const auto later = [](GraphBuilder& builder) {
    OpSpec first = op("first");
    first.after = {"second"};
    builder.add_op(first);
    builder.add_op(op("second"));
  };
  EXPECT_THAT(refusal(later), AllOf(HasSubstr("op 'first'"), HasSubstr("'second'"),
                                    HasSubstr("topological order")));
}

TEST(GraphBuilder, tells_a_cycle_from_a_wrong_order) {
  const auto wrong_order = [](GraphBuilder& builder) {
    const TensorId t = builder.add_tensor({.bytes = 1});
    builder.add_op(op("reader", {t}));
    builder.add_op(op("writer", {}, {t}));
  };
  EXPECT_THAT(refusal(wrong_order), AllOf(HasSubstr("op 'reader'"), HasSubstr("'writer'"),
                                          HasSubstr("topological order")));
  const auto cycle = [](GraphBuilder& builder) {
    const TensorId t = builder.add_tensor({.bytes = 1});
    const TensorId u = builder.add_tensor({.bytes = 1});
    builder.add_op(op("one", {u}, {t}));
    builder.add_op(op("two", {t}, {u}));
  };
  EXPECT_THAT(refusal(cycle), AllOf(HasSubstr("cycle"), HasSubstr("'one'"), HasSubstr("'two'")));
  const auto self = [](GraphBuilder& builder) {
    const TensorId t = builder.add_tensor({.bytes = 1});
    builder.add_op(op("alone", {t}, {t}));
  };
  EXPECT_THAT(refusal(self), AllOf(HasSubstr("cycle"), HasSubstr("op 'alone'")));
}

TEST(GraphBuilder, shows_a_cycle_in_the_direction_of_its_data) {
  const auto cycle = [](GraphBuilder& builder) {
    for (int i = 0; i < 3; ++i) builder.add_tensor({.bytes = 1});
    builder.add_op(op("one", {2}, {0}));
    builder.add_op(op("two", {0}, {1}));
    builder.add_op(op("three", {1}, {2}));
  };
  EXPECT_THAT(refusal(cycle), HasSubstr("'one' -> 'two' -> 'three' -> 'one'"));
}

}  // namespace
}  // namespace emplace
