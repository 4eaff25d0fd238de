#include "graph/training.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

#include "graph/colocation.h"

#include "support/backward_text.h"
#include "zoo/layers.h"
#include "zoo/net.h"
#include "zoo/operators.h"

namespace emplace {
namespace {

using zoo::Net;
using zoo::Value;
using Lines = std::vector<std::string>;

std::string error_of(const Graph& graph, const TrainingOptions& options = {}) {
  try {
    training_step(graph, options);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

OpId find(const Graph& graph, const std::string& name) {
  const auto op = graph.find_op(name);
  if (!op) throw std::logic_error("there is no op " + name);
  return *op;
}

std::int64_t count_type(const Graph& graph, std::string_view type) {
  std::int64_t count = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) count += graph.type(op) == type ? 1 : 0;
  return count;
}

// x [2, 3] -> Gemm with w1 [4, 3], b1 -> Relu -> Gemm with w2 [5, 4] -> cross entropy.
Graph two_layer_net() {
  Net net("two-layers");
  const Value x = net.input("x", {2, 3});
  const Value labels = net.input("labels", {2}, DType::kInt64);
  const Value w1 = net.parameter("w1", {4, 3});
  const Value b1 = net.parameter("b1", {4});
  const Value w2 = net.parameter("w2", {5, 4});
  const Value hidden = relu(net, gemm(net, x, w1, b1));
  cross_entropy(net, gemm(net, hidden, w2, std::nullopt), labels);
  return std::move(net).build();
}

TEST(Training, two_layers_have_exactly_these_gradients) {
  EXPECT_EQ(backward_text(training_step(two_layer_net())),
            (Lines{
                "SoftmaxCrossEntropyLoss/grad/seed = OnesLike(SoftmaxCrossEntropyLoss) []",
                "SoftmaxCrossEntropyLoss/grad = SoftmaxCrossEntropyLossGrad("
                "SoftmaxCrossEntropyLoss/grad/seed, labels, SoftmaxCrossEntropyLoss:1) [2, 5]",
                "Gemm_1/grad/0 = Gemm(SoftmaxCrossEntropyLoss/grad, w2) [2, 4]",
                "Gemm_1/grad/1 = Gemm(SoftmaxCrossEntropyLoss/grad, Relu) [5, 4]",
                "Relu/grad = ReluGrad(Gemm_1/grad/0, Relu) [2, 4]",
                "Gemm/grad/1 = Gemm(Relu/grad, x) [4, 3]",
                "Gemm/grad/2 = ReduceSum(Relu/grad) [4]",
                "w1/update = SgdUpdate(w1, Gemm/grad/1)",
                "b1/update = SgdUpdate(b1, Gemm/grad/2)",
                "w2/update = SgdUpdate(w2, Gemm_1/grad/1)",
            }));
}

TEST(Training, gradients_carry_attributes_costs_phase_and_module) {
  const Graph graph = training_step(two_layer_net());
  const OpId weights = find(graph, "Gemm/grad/1");
  EXPECT_EQ(graph.attributes(weights), (Attributes{{"transA", std::int64_t{1}}}));
  EXPECT_TRUE(graph.attributes(find(graph, "Gemm_1/grad/0")).empty());
  EXPECT_EQ(graph.flops(weights), 2 * 2 * 4 * 3);
  EXPECT_EQ(graph.bytes_moved(weights), 4 * (2 * 4 + 2 * 3 + 4 * 3));
  EXPECT_EQ(graph.phase(weights), Phase::kBackward);
  const OpId update = find(graph, "w1/update");
  EXPECT_EQ(graph.phase(update), Phase::kUpdate);
  EXPECT_EQ(graph.flops(update), 2 * 12);
  EXPECT_EQ(graph.bytes_moved(update), 3 * 48);  // both read, the parameter written

  Net net("module");
  const auto scope = net.scope("encoder.0");
  relu(net, mul(net, net.input("x", {3}), net.parameter("w", {3})));
  const Graph small = training_step(std::move(net).build());
  EXPECT_EQ(small.module(find(small, "encoder.0.Relu/grad")), "encoder.0");
  EXPECT_EQ(small.module(find(small, "encoder.0.w/update")), "encoder.0");
}

TEST(Training, forward_pass_stays_as_it_was) {
  const Graph forward = two_layer_net();
  const Graph graph = training_step(forward);
  for (OpId op = 0; op < forward.num_ops(); ++op) {
    EXPECT_EQ(op_text(graph, op), op_text(forward, op));
    EXPECT_EQ(graph.flops(op), forward.flops(op));
    EXPECT_EQ(graph.attributes(op), forward.attributes(op));
    EXPECT_EQ(graph.phase(op), Phase::kForward);
  }
}

TEST(Training, broadcast_operands_get_sums) {
  Net net("broadcast");
  const Value x = net.input("x", {2, 3, 4});
  const Value scaled = mul(net, x, net.parameter("scale", {3, 1}));
  const Value moved = add(net, scaled, net.parameter("shift", {1, 1, 4}));
  sub(net, moved, net.parameter("offset", {4}));
  EXPECT_EQ(backward_text(training_step(std::move(net).build())),
            (Lines{
                "Sub/grad/seed = OnesLike(Sub) [2, 3, 4]",
                "Sub/grad/1_sum = ReduceSum(Sub/grad/seed) [4]",
                "Sub/grad/1 = Neg(Sub/grad/1_sum) [4]",
                "Add/grad/1_sum = ReduceSum(Sub/grad/seed) [1, 1, 4]",
                "Mul/grad/1 = Mul(Sub/grad/seed, x) [2, 3, 4]",
                "Mul/grad/1_sum = ReduceSum(Mul/grad/1) [3]",
                "Mul/grad/1_sum_shape = Reshape(Mul/grad/1_sum) [3, 1]",
                "scale/update = SgdUpdate(scale, Mul/grad/1_sum_shape)",
                "shift/update = SgdUpdate(shift, Add/grad/1_sum)",
                "offset/update = SgdUpdate(offset, Sub/grad/1)",
            }));
}

// h1 = relu(h0 w), h2 = relu(h1 w), h3 = relu(h2 w): the gradients of w come in reverse order.
TEST(Training, gradients_of_a_shared_parameter_are_a_running_sum) {
  Net net("recurrent");
  const Value w = net.parameter("w", {4, 4});
  Value state = net.input("x", {2, 4});
  for (int step = 0; step < 3; ++step) state = relu(net, gemm(net, state, w, std::nullopt));
  const Graph graph = training_step(std::move(net).build());
  Lines sums;
  for (const std::string& line : backward_text(graph)) {
    if (line.find("Add") != std::string::npos || line.find("update") != std::string::npos) {
      sums.push_back(line);
    }
  }
  EXPECT_EQ(sums, (Lines{
                      "w/grad/sum = Add(Gemm_2/grad/1, Gemm_1/grad/1) [4, 4]",
                      "w/grad/sum_2 = Add(w/grad/sum, Gemm/grad/1) [4, 4]",
                      "w/update = SgdUpdate(w, w/grad/sum_2)",
                  }));
  // The sum comes as soon as both terms are there.
  EXPECT_LT(find(graph, "w/grad/sum"), find(graph, "Gemm/grad/1"));
}

TEST(Training, branches_meet_in_a_sum_before_they_go_on) {
  Net net("residual");
  const Value stem = gemm(net, net.input("x", {2, 4}), net.parameter("w", {4, 4}), std::nullopt);
  add(net, stem, relu(net, stem));
  EXPECT_EQ(backward_text(training_step(std::move(net).build())),
            (Lines{
                "Add/grad/seed = OnesLike(Add) [2, 4]",
                "Relu/grad = ReluGrad(Add/grad/seed, Relu) [2, 4]",
                "Gemm/grad/sum = Add(Add/grad/seed, Relu/grad) [2, 4]",
                "Gemm/grad/1 = Gemm(Gemm/grad/sum, x) [4, 4]",
                "w/update = SgdUpdate(w, Gemm/grad/1)",
            }));
}

TEST(Training, only_the_loss_is_differentiated_where_there_is_one) {
  Net net("logits-and-loss");
  const Value logits = gemm(net, net.input("x", {2, 4}), net.parameter("w", {3, 4}), std::nullopt);
  softmax(net, logits);  // handed out beside the loss
  const Value unused = net.parameter("unused", {3});
  relu(net, unused);
  cross_entropy(net, logits, net.input("labels", {2}, DType::kInt64));
  const Graph graph = training_step(std::move(net).build());
  EXPECT_EQ(count_type(graph, "OnesLike"), 1);
  EXPECT_EQ(count_type(graph, "SoftmaxGrad"), 0);
  EXPECT_TRUE(graph.find_op("w/update"));
  EXPECT_FALSE(graph.find_op("unused/update"));
}

TEST(Training, without_a_loss_every_result_is_differentiated_but_not_what_ops_have_beside) {
  Net net("two-heads");
  const Value x = net.input("x", {2, 4});
  const Value w = net.parameter("w", {4});
  dropout(net, mul(net, x, w), 0.1);
  relu(net, add(net, x, w));
  const Graph graph = training_step(std::move(net).build());
  EXPECT_EQ(count_type(graph, "OnesLike"), 2);
  EXPECT_EQ(op_text(graph, find(graph, "Dropout/grad")),
            "Dropout/grad = DropoutGrad(Dropout/grad/seed, Dropout:1) [2, 4]");
}

TEST(Training, dropout_without_a_mask_hands_the_gradient_on) {
  Net net("inference-dropout");
  const Value y = mul(net, net.input("x", {4}), net.parameter("w", {4}));
  net.add_one("Dropout", {y}, Shape{4});
  const Graph graph = training_step(std::move(net).build());
  EXPECT_EQ(op_text(graph, find(graph, "Mul/grad/1")),
            "Mul/grad/1 = Mul(Dropout/grad/seed, x) [4]");
}

TEST(Training, integers_and_rounding_stop_the_gradient) {
  Net net("stops");
  const Value w = net.parameter("w", {4});
  const Value v = net.parameter("v", {4});
  add(net, unary(net, "Floor", w), v);
  const Graph graph = training_step(std::move(net).build());
  EXPECT_FALSE(graph.find_op("w/update"));
  EXPECT_TRUE(graph.find_op("v/update"));
}

TEST(Training, optimizers_have_their_state_with_the_parameter) {
  const auto state_bytes = [](const Graph& graph) {
    Bytes bytes = 0;
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      if (graph.role(op) == OpRole::kBuffer) bytes += graph.bytes(graph.outputs(op)[0]);
    }
    return bytes;
  };
  const Bytes weights = 4 * (12 + 4 + 20);
  EXPECT_EQ(state_bytes(training_step(two_layer_net())), 0);
  EXPECT_EQ(state_bytes(training_step(two_layer_net(), {.optimizer = Optimizer::kMomentum})),
            weights);
  const Graph adam = training_step(two_layer_net(), {.optimizer = Optimizer::kAdam});
  EXPECT_EQ(state_bytes(adam), 2 * weights);
  EXPECT_EQ(op_text(adam, find(adam, "w1/update")),
            "w1/update = AdamUpdate(w1, Gemm/grad/1, w1/moment1, w1/moment2)");
  EXPECT_EQ(adam.flops(find(adam, "w1/update")), 12 * 12);
  EXPECT_EQ(adam.bytes_moved(find(adam, "w1/update")), (4 + 3) * 48);
  const Colocation groups = find_colocation(adam);
  const GroupId group = groups.group_of[find(adam, "w1")];
  for (const char* name : {"w1/update", "w1/moment1", "w1/moment2"}) {
    EXPECT_EQ(groups.group_of[find(adam, name)], group) << name;
  }
  EXPECT_NE(groups.group_of[find(adam, "w2")], group);
}

TEST(Training, optimizers_are_known_by_name) {
  EXPECT_EQ(optimizer_names(), (Lines{"sgd", "momentum", "adam"}));
  EXPECT_EQ(parse_optimizer("adam"), Optimizer::kAdam);
  EXPECT_EQ(parse_optimizer("momentum"), Optimizer::kMomentum);
  EXPECT_EQ(parse_optimizer("sgd"), Optimizer::kSgd);
  try {
    parse_optimizer("adamm");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOption);
    EXPECT_STREQ(error.what(),
                 "there is no optimizer 'adamm' (did you mean 'adam'?); expected one "
                 "of: sgd, momentum, adam");
  }
}

TEST(Training, gradients_stay_with_their_forward_op_when_asked) {
  Net net("colocated");
  const Value x = net.input("x", {2, 4});
  const Value w = net.parameter("w", {4, 4});
  Value y = gemm(net, relu(net, gemm(net, x, w, std::nullopt)), w, std::nullopt);
  softmax(net, reshape(net, y, {8}));
  const Graph forward = std::move(net).build();
  const Graph graph = training_step(forward, {.colocate_gradients = true});
  const Colocation groups = find_colocation(graph);
  const auto together = [&](const char* a, const char* b) {
    return groups.group_of[find(graph, a)] == groups.group_of[find(graph, b)];
  };
  EXPECT_TRUE(together("Gemm", "Gemm/grad/1"));
  EXPECT_TRUE(together("Gemm_1", "Gemm_1/grad/0"));
  EXPECT_TRUE(together("Gemm_1", "Gemm_1/grad/1"));
  EXPECT_TRUE(together("Relu", "Relu/grad"));
  EXPECT_TRUE(together("Softmax", "Softmax/grad"));
  EXPECT_FALSE(together("Gemm", "Gemm_1"));
  EXPECT_FALSE(together("Gemm", "Relu"));
  EXPECT_FALSE(together("Gemm_1", "Softmax"));  // though a view of each lies with the other
  EXPECT_TRUE(graph.colocate(find(graph, "w/grad/sum")).empty());

  const Graph free = training_step(forward);
  for (OpId op = 0; op < free.num_ops(); ++op) EXPECT_TRUE(free.colocate(op).empty());
}

TEST(Training, names_that_are_taken_are_not_used_again) {
  Net net("taken");
  const Value w = net.parameter("w", {4});
  net.parameter("w/update", {4});
  const auto scope = net.scope("Relu/grad");
  relu(net, w);
  const Graph graph = training_step(std::move(net).build());
  EXPECT_EQ(graph.type(find(graph, "w/update")), "parameter");
  EXPECT_EQ(graph.type(find(graph, "w/update+")), "SgdUpdate");
}

// The output's gradients are summed, and the sum is summed again over what the operator repeated.
TEST(Training, sums_over_readers_and_over_repeats_have_names_of_their_own) {
  const auto step_of = [](const OpSpec& repeats) {
    GraphBuilder builder("two-readers");
    const TensorSpec four{.shape = {4}, .dtype = DType::kFloat32};
    const TensorSpec rows{.shape = {2, 4}, .dtype = DType::kFloat32};
    const auto w = builder.add({.name = "w", .type = "parameter"}, {four});
    const auto other = builder.add({.name = "other", .type = "input"}, {rows});
    OpSpec spec = repeats;
    spec.inputs = spec.type == "Where" ? std::vector{other[0], w[0]} : std::vector{w[0], other[0]};
    const auto y = builder.add(spec, {rows});
    for (const char* reader : {"left", "right"}) {
      builder.add({.name = reader, .type = "Relu", .inputs = y}, {rows});
    }
    return training_step(std::move(builder).build());
  };
  for (const char* type : {"Expand", "Where"}) {
    const Graph graph = step_of({.name = "y", .type = type});
    EXPECT_EQ(op_text(graph, find(graph, "y/grad/sum")),
              "y/grad/sum = Add(right/grad, left/grad) [2, 4]");
    EXPECT_EQ(op_text(graph, find(graph, "y/grad/sum+")),
              "y/grad/sum+ = ReduceSum(y/grad/sum) [4]");
    EXPECT_EQ(op_text(graph, find(graph, "w/update")), "w/update = SgdUpdate(w, y/grad/sum+)");
  }
}

TEST(Training, measured_times_devices_and_control_dependencies_are_kept) {
  GraphBuilder builder("measured");
  const auto w =
      builder.add({.name = "w", .type = "parameter"}, {{.shape = {4}, .dtype = DType::kFloat32}});
  builder.add_op({.name = "first", .type = "Shape", .inputs = {w[0]}});
  builder.add({.name = "relu",
               .type = "Relu",
               .inputs = {w[0]},
               .time_us = {{"p100", {125, -1}}},
               .after = {"first"},
               .devices = {"p100"}},
              {{.shape = {4}, .dtype = DType::kFloat32}});
  const Graph graph = training_step(std::move(builder).build());
  const OpId relu = find(graph, "relu");
  ASSERT_EQ(graph.measured_times(relu).size(), 1U);
  EXPECT_EQ(graph.measured_times(relu)[0].microseconds, (Decimal{125, -1}));
  ASSERT_EQ(graph.after(relu).size(), 1U);
  EXPECT_EQ(graph.op_name(graph.after(relu)[0]), "first");
  const OpId gradient = find(graph, "relu/grad");
  EXPECT_TRUE(graph.measured_times(gradient).empty());
  ASSERT_EQ(graph.allowed_devices(gradient).size(), 1U);
  EXPECT_EQ(graph.strings().get(graph.allowed_devices(gradient)[0]), "p100");
}

TEST(Training, a_result_whose_op_serves_by_another_output_is_no_loss) {
  GraphBuilder builder("top");
  const TensorSpec four{.shape = {1, 4}, .dtype = DType::kFloat32};
  const auto w = builder.add({.name = "w", .type = "parameter"}, {four});
  const auto v = builder.add({.name = "v", .type = "parameter"}, {four});
  const auto top = builder.add({.name = "top", .type = "TopK", .inputs = {w[0]}},
                               {four, {.shape = {1, 4}, .dtype = DType::kInt64}});
  builder.add({.name = "picked", .type = "GatherElements", .inputs = {v[0], top[1]}}, {four});
  const Graph step = training_step(std::move(builder).build());
  EXPECT_TRUE(step.find_op("v/update"));
  EXPECT_FALSE(step.find_op("w/update"));
}

TEST(Training, results_of_one_element_that_have_dimensions_are_all_differentiated) {
  GraphBuilder builder("heads");
  const auto w = builder.add({.name = "w", .type = "parameter"},
                             {{.shape = {1, 4}, .dtype = DType::kFloat32}});
  const auto v = builder.add({.name = "v", .type = "parameter"},
                             {{.shape = {1, 1}, .dtype = DType::kFloat32}});
  builder.add({.name = "policy", .type = "Relu", .inputs = {w[0]}},
              {{.shape = {1, 4}, .dtype = DType::kFloat32}});
  builder.add({.name = "value", .type = "Relu", .inputs = {v[0]}},
              {{.shape = {1, 1}, .dtype = DType::kFloat32}});
  const Graph step = training_step(std::move(builder).build());
  EXPECT_TRUE(step.find_op("w/update"));
  EXPECT_TRUE(step.find_op("v/update"));
}

TEST(Training, tensors_known_by_their_bytes_alone_are_refused) {
  GraphBuilder builder("bytes");
  const auto w =
      builder.add({.name = "w", .type = "parameter"}, {{.shape = {4}, .dtype = DType::kFloat32}});
  builder.add({.name = "opaque", .type = "Relu", .inputs = {w[0]}}, {{.bytes = 16}});
  EXPECT_NE(error_of(std::move(builder).build()).find("op 'opaque': its output is known"),
            std::string::npos);
}

TEST(Training, operators_without_a_rule_are_all_named) {
  GraphBuilder builder("odd");
  const TensorSpec four{.shape = {4}, .dtype = DType::kFloat32};
  const auto w = builder.add({.name = "w", .type = "parameter"}, {four});
  const auto a = builder.add({.name = "a", .type = "Loop", .inputs = {w[0]}}, {four});
  const auto b = builder.add({.name = "b", .type = "Frobnicate", .inputs = {a[0]}}, {four});
  builder.add({.name = "c", .type = "Frobnicate", .inputs = {b[0]}}, {four});
  builder.add({.name = "elsewhere", .type = "Scan", .inputs = {}}, {four});
  EXPECT_EQ(
      error_of(std::move(builder).build()),
      "graph 'odd': there is no gradient rule for: Frobnicate (2 ops, the first is 'b'), Loop "
      "(op 'a'); docs/training.md lists the operators that have one");
}

TEST(Training, graphs_that_cannot_be_trained_are_refused) {
  EXPECT_EQ(error_of(training_step(two_layer_net())),
            "op 'SoftmaxCrossEntropyLoss/grad/seed' is of phase backward: the graph is a training "
            "step already; expected a forward pass alone");
  Net no_parameters("empty");
  relu(no_parameters, no_parameters.input("x", {4}));
  EXPECT_EQ(error_of(std::move(no_parameters).build()),
            "graph 'empty': there is nothing to train: it has no parameters");
  Net rounded("rounded");
  unary(rounded, "Round", rounded.parameter("w", {4}));
  EXPECT_EQ(error_of(std::move(rounded).build()),
            "graph 'rounded': there is nothing to train: no output depends on a parameter in a way "
            "that can be differentiated");
}

}  // namespace
}  // namespace emplace
