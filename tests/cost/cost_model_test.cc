// Op times: measured before analytic, exact decimals, the roofline, and what is refused.
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "graph/graph_builder.h"

#include "cost/op_class.h"
#include "cost/problem.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;

TensorSpec matrix(std::int64_t rows, std::int64_t columns) {
  return {.shape = {rows, columns}, .dtype = DType::kFloat32};
}

DeviceKind round_kind() {
  return {.name = "gpu",
          .peak_flops = {{"float32", 1e12}, {"tf32", 4e12}, {"float16", 8e12}},
          .memory_bandwidth = 1e11,
          .memory = Bytes{1} << 30,
          .launch_us = 5};
}

std::shared_ptr<const Cluster> cluster_of(std::vector<Device> devices) {
  ClusterSpec spec{
      .name = "test", .kinds = {round_kind()}, .devices = std::move(devices), .links = {}};
  spec.links.push_back({.bandwidth = 1'000'000'000});
  return std::make_shared<const Cluster>(spec);
}

Device gpu(const std::string& name, Decimal slowdown = {1, 0}) {
  return {.name = name, .kind = "gpu", .memory = Bytes{1} << 30, .slowdown = slowdown};
}

// An input and one op that reads it.
std::shared_ptr<const Graph> graph_with(OpSpec op) {
  GraphBuilder builder("one");
  op.inputs = builder.add({.name = "x", .type = "input"}, {matrix(1000, 1000)});
  builder.add(op, {matrix(1000, 1000)});
  return std::make_shared<const Graph>(std::move(builder).build());
}

Nanoseconds time_of(const OpSpec& op, CostMode mode = CostMode::kAuto,
                    const Device& device = gpu("d0")) {
  return compile(graph_with(op), cluster_of({device}), mode)->duration(1, 0);
}

std::string refusal(const OpSpec& op, CostMode mode, const Device& device = gpu("d0")) {
  try {
    time_of(op, mode, device);
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

TEST(CostModel, takes_the_time_of_the_device_before_that_of_its_kind) {
  const OpSpec op{.name = "op", .type = "mm", .time_us = {{"gpu", {20, 0}}, {"d0", {10, 0}}}};
  EXPECT_EQ(time_of(op), 10'000);
  EXPECT_EQ(time_of(op, CostMode::kAuto, gpu("d1")), 20'000);
}

TEST(CostModel, a_time_for_any_device_comes_last) {
  const OpSpec both{
      .name = "op", .type = "mm", .time_us = {{std::string(kAnyDevice), {9, 0}}, {"gpu", {20, 0}}}};
  EXPECT_EQ(time_of(both), 20'000);
  EXPECT_EQ(time_of({.name = "op", .type = "mm", .time_us = {{std::string(kAnyDevice), {9, 0}}}}),
            9'000);
}

TEST(CostModel, rounds_half_up_after_slowing_down_exactly) {
  const OpSpec op{.name = "op", .type = "mm", .time_us = {{"gpu", {1, -3}}}};  // 1 ns
  EXPECT_EQ(time_of(op, CostMode::kAuto, gpu("d0", {15, -1})), 2);
  EXPECT_EQ(time_of(op, CostMode::kAuto, gpu("d0", {149999, -5})), 1);
  EXPECT_EQ(time_of({.name = "op", .type = "mm", .time_us = {{"gpu", {5, -4}}}}), 1);
  EXPECT_EQ(time_of({.name = "op", .type = "mm", .time_us = {{"gpu", {49, -5}}}}), 0);
}

TEST(CostModel, matrix_products_are_bound_by_the_reachable_tf32_peak) {
  // 2e9 FLOPs at 0.55 * 4e12 a second, and 5 us to launch.
  EXPECT_EQ(time_of({.name = "op", .type = "mm", .flops = 2'000'000'000}), 5'000 + 909'091);
}

TEST(CostModel, elementwise_ops_are_bound_by_the_reachable_bandwidth) {
  // 8 MB in and out at 0.75 * 1e11 bytes a second.
  EXPECT_EQ(time_of({.name = "op", .type = "relu", .flops = 1'000'000}), 5'000 + 106'667);
  EXPECT_EQ(time_of({.name = "op", .type = "relu", .flops = 0, .bytes_moved = 75'000}),
            5'000 + 1'000);
}

TEST(CostModel, analytic_mode_ignores_measurements) {
  const OpSpec op{.name = "op", .type = "mm", .flops = 2'000'000'000, .time_us = {{"gpu", {1, 0}}}};
  EXPECT_EQ(time_of(op, CostMode::kAnalytic), 914'091);
}

TEST(CostModel, measured_mode_lists_ops_without_a_time) {
  EXPECT_THAT(refusal({.name = "op", .type = "mm", .flops = 1}, CostMode::kMeasured),
              HasSubstr("op"));
  EXPECT_THAT(
      refusal({.name = "op", .type = "mm", .time_us = {{"tpu", {1, 0}}}}, CostMode::kMeasured),
      HasSubstr("1 ops have no measured time for 'd0'"));
}

TEST(CostModel, refuses_times_that_cannot_be_counted) {
  EXPECT_THAT(refusal({.name = "op", .type = "mm", .time_us = {{"gpu", {9, 17}}}}, CostMode::kAuto),
              HasSubstr("op 'op': lasts longer than can be counted"));
  EXPECT_THAT(refusal({.name = "op", .type = "mm", .time_us = {{"gpu", {9, 15}}}}, CostMode::kAuto),
              HasSubstr("longer than can be counted"));
}

TEST(CostModel, refuses_links_whose_times_cannot_be_counted) {
  ClusterSpec spec{
      .name = "slow", .kinds = {round_kind()}, .devices = {gpu("d0"), gpu("d1")}, .links = {}};
  const Nanoseconds huge = std::numeric_limits<Nanoseconds>::max();
  spec.links.push_back({.bandwidth = 1, .latency = huge, .hold = huge});
  EXPECT_THROW(
      compile(graph_with({.name = "op", .type = "mm"}), std::make_shared<const Cluster>(spec)),
      Error);
}

TEST(CostModel, says_how_much_was_measured) {
  GraphBuilder builder("half");
  builder.add({.name = "a", .type = "mm", .time_us = {{"gpu", {30, 0}}}}, {matrix(1, 1)});
  builder.add({.name = "b", .type = "relu", .bytes_moved = 375'000}, {matrix(1, 1)});  // 10 us
  const auto problem = compile(std::make_shared<const Graph>(std::move(builder).build()),
                               cluster_of({gpu("d0"), gpu("d1")}));
  EXPECT_EQ(problem->cost_origin().measured_ops, 1);
  EXPECT_EQ(problem->cost_origin().analytic_ops, 1);
  EXPECT_DOUBLE_EQ(problem->cost_origin().measured_share, 0.75);
}

TEST(CostModel, sources_and_views_take_no_time_whatever_was_measured) {
  EXPECT_EQ(time_of({.name = "op", .type = "reshape", .time_us = {{"gpu", {3, 0}}}, .view = true}),
            0);
  EXPECT_EQ(
      compile(graph_with({.name = "op", .type = "mm"}), cluster_of({gpu("d0")}))->duration(0, 0),
      0);
}

TEST(OpClass, knows_the_names_of_pytorch_and_onnx) {
  const auto is = [](std::string_view type, OpClass expected) {
    EXPECT_EQ(classify(type, Phase::kForward), expected) << type;
  };
  for (const auto* type : {"mm", "addmm", "bmm", "MatMul", "Gemm", "LSTM"})
    is(type, OpClass::kMatMul);
  for (const auto* type : {"convolution", "convolution_backward", "Conv", "ConvTranspose"}) {
    is(type, OpClass::kConvolution);
  }
  for (const auto* type : {"native_layer_norm", "BatchNormalization"})
    is(type, OpClass::kNormalization);
  for (const auto* type : {"_softmax", "sum", "ReduceMean", "max_pool2d_with_indices", "Softmax"}) {
    is(type, OpClass::kReduction);
  }
  for (const auto* type : {"embedding", "Gather", "slice", "Slice"}) is(type, OpClass::kGather);
  for (const auto* type : {"cat", "Concat", "Transpose", "clone"}) is(type, OpClass::kCopy);
  for (const auto* type : {"relu", "Add", "mul", "tanh", "Sigmoid"})
    is(type, OpClass::kElementwise);
  EXPECT_EQ(classify("sgd", Phase::kUpdate), OpClass::kUpdate);
}

}  // namespace
}  // namespace emplace
