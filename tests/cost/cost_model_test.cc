// Op times: measured before analytic, exact decimals, the curves' formula, and what is refused.
#include "cost/cost_model.h"

#include <cmath>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/device_kinds.h"
#include "graph/graph_builder.h"

#include "cost/problem.h"

namespace emplace {
namespace {

using ::testing::HasSubstr;

TensorSpec matrix(std::int64_t rows, std::int64_t columns) {
  return {.shape = {rows, columns}, .dtype = DType::kFloat32};
}

// Its curves are the roofline itself: the peaks are reached at once.
DeviceKind round_kind() {
  return {.name = "gpu",
          .peak_flops = {{"float32", 1e12}, {"tf32", 4e12}, {"float16", 8e12}},
          .memory_bandwidth = 1e11,
          .memory = Bytes{1} << 30,
          .launch_us = 5,
          .curves = CostCurves()};
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

TEST(CostModel, matrix_products_are_bound_by_the_tf32_peak) {
  // 2e9 FLOPs at 4e12 a second; the launch overlaps with what ran before.
  EXPECT_EQ(time_of({.name = "op", .type = "mm", .flops = 2'000'000'000}), 500'000);
}

TEST(CostModel, elementwise_ops_are_bound_by_the_bandwidth) {
  // 8 MB in and out at 1e11 bytes a second.
  EXPECT_EQ(time_of({.name = "op", .type = "relu", .flops = 1'000'000}), 80'000);
  EXPECT_EQ(time_of({.name = "op", .type = "relu", .flops = 0, .bytes_moved = 600'000}), 6'000);
}

TEST(CostModel, small_ops_take_as_long_as_their_launch) {
  EXPECT_EQ(time_of({.name = "op", .type = "relu", .flops = 0, .bytes_moved = 8}), 5'000);
  DeviceKind kind = round_kind();
  kind.curves[OpClass::kReduction].launches = 3;
  EXPECT_EQ(work_time_us({.op_class = OpClass::kReduction, .bytes = 8}, kind), 15);
}

TEST(CostModel, curves_share_out_the_peaks) {
  DeviceKind kind = round_kind();
  CostCurve& product = kind.curves[OpClass::kMatMul];
  product = {.ramp_us = 10, .compute = 0.5, .half_tiles = 3, .unaligned = 0.25};
  const OpWork large{.op_class = OpClass::kMatMul, .flops = 4e9, .tiles = 1};
  EXPECT_DOUBLE_EQ(work_time_us(large, kind), 10 + 2000 * 4);
  OpWork ragged = large;
  ragged.unaligned = true;
  EXPECT_DOUBLE_EQ(work_time_us(ragged, kind), 10 + 2000 * 4 * 4);
  kind.curves[OpClass::kConvolution] = {.bandwidth = 0.5, .half_depth = 30};
  // A convolution's changes of layout come on top: 8e5 bytes at 5e10 a second.
  EXPECT_DOUBLE_EQ(
      work_time_us({.op_class = OpClass::kConvolution, .flops = 4e9, .bytes = 8e5, .depth = 10},
                   kind),
      1000 * 4 + 16);
  kind.curves[OpClass::kBatchNorm] = {.lane_bandwidth = 1e9};
  EXPECT_DOUBLE_EQ(
      work_time_us({.op_class = OpClass::kBatchNorm, .bytes = 1e8, .channels = 10}, kind),
      1000 + 10'000);
}

TEST(CostModel, other_classes_do_not_use_matrix_units) {
  const DeviceKind kind = round_kind();
  EXPECT_EQ(peak_flops(kind, DType::kFloat32, OpClass::kMatMul), 4e12);
  EXPECT_EQ(peak_flops(kind, DType::kFloat32, OpClass::kDepthwise), 1e12);
  EXPECT_EQ(peak_flops(kind, DType::kFloat32, OpClass::kAttention), 1e12);
  EXPECT_EQ(peak_flops(kind, DType::kFloat16, OpClass::kAttention), 8e12);
  EXPECT_EQ(peak_flops(kind, DType::kFloat16, OpClass::kConvolution), 8e12);
  EXPECT_EQ(peak_flops(kind, DType::kFloat16, OpClass::kElementwise), 1e12);
}

// More work never takes less time, on any kind and in any class, and every time is a real one.
TEST(CostModel, times_are_positive_and_grow_with_the_work) {
  for (const DeviceKind& kind : built_in_device_kinds()) {
    for (std::size_t i = 0; i < kNumOpClasses; ++i) {
      double last = 0;
      for (const double scale : {0.0, 1e3, 1e6, 1e8, 1e9, 1e10, 1e12}) {
        double last_bytes = 0;
        for (const double bytes : {0.0, 1e4, 1e6, 1e8, 1e10}) {
          const OpWork work{.op_class = static_cast<OpClass>(i),
                            .flops = scale,
                            .bytes = bytes,
                            .channels = 64,
                            .depth = 576,
                            .tiles = 100};
          const double time = work_time_us(work, kind);
          ASSERT_TRUE(std::isfinite(time) && time > 0) << kind.name;
          ASSERT_GE(time, last_bytes) << kind.name << " " << op_class_name(work.op_class);
          last_bytes = time;
        }
        ASSERT_GE(last_bytes, last) << kind.name;
        last = last_bytes;
      }
    }
  }
}

TEST(CostModel, faster_kinds_are_faster_at_large_work) {
  const OpWork product{.op_class = OpClass::kMatMul, .flops = 1e12, .bytes = 1e9, .tiles = 4000};
  const OpWork stream{.op_class = OpClass::kElementwise, .bytes = 1e9};
  double last_product = 0;
  double last_stream = 0;
  for (const char* name : {"h200", "h100", "a100", "v100", "p100", "k80", "cpu"}) {
    const DeviceKind& kind = *find_device_kind(name);
    EXPECT_GT(work_time_us(product, kind), last_product * 0.999) << name;
    EXPECT_GT(work_time_us(stream, kind), last_stream) << name;
    last_product = work_time_us(product, kind);
    last_stream = work_time_us(stream, kind);
  }
}

TEST(CostModel, analytic_mode_ignores_measurements) {
  const OpSpec op{.name = "op", .type = "mm", .flops = 2'000'000'000, .time_us = {{"gpu", {1, 0}}}};
  EXPECT_EQ(time_of(op, CostMode::kAnalytic), 500'000);
}

TEST(CostModel, a_kind_without_peaks_is_an_error_that_names_the_op) {
  DeviceKind kind = round_kind();
  kind.memory_bandwidth = 0;
  const auto graph = graph_with({.name = "op", .type = "relu"});
  try {
    analytic_time_us(*graph, 1, kind);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("op 'op'"));
    EXPECT_THAT(error.what(), HasSubstr("kind 'gpu'"));
    EXPECT_THAT(error.what(), HasSubstr("memory_bandwidth"));
  }
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
  builder.add({.name = "b", .type = "relu", .bytes_moved = 1'000'000}, {matrix(1, 1)});  // 10 us
  const auto problem = compile(std::make_shared<const Graph>(std::move(builder).build()),
                               cluster_of({gpu("d0"), gpu("d1")}));
  ASSERT_EQ(problem->cost_origins().size(), 2U);
  EXPECT_EQ(problem->cost_origins()[0].source, "measured");
  EXPECT_EQ(problem->cost_origins()[0].ops, 1);
  EXPECT_DOUBLE_EQ(problem->cost_origins()[0].share, 0.75);
  EXPECT_EQ(problem->cost_origins()[1].source, "analytic");
  EXPECT_EQ(problem->cost_origins()[1].ops, 1);
  EXPECT_DOUBLE_EQ(problem->cost_origins()[1].share, 0.25);
}

TEST(CostModel, sources_and_views_take_no_time_whatever_was_measured) {
  EXPECT_EQ(time_of({.name = "op", .type = "reshape", .time_us = {{"gpu", {3, 0}}}, .view = true}),
            0);
  EXPECT_EQ(
      compile(graph_with({.name = "op", .type = "mm"}), cluster_of({gpu("d0")}))->duration(0, 0),
      0);
}

// Edges of tiles and rows of odd length must not make more work cheaper.
TEST(AnalyticTime, of_a_product_never_falls_as_it_grows) {
  const auto time = [](std::int64_t rows, std::int64_t depth, std::int64_t columns) {
    GraphBuilder builder("product");
    const auto x = builder.add({.name = "x", .type = "input"},
                               {{.shape = {rows, depth}, .dtype = DType::kFloat32}});
    const auto w = builder.add({.name = "w", .type = "parameter"},
                               {{.shape = {depth, columns}, .dtype = DType::kFloat32}});
    builder.add({.name = "mm", .type = "mm", .inputs = {x[0], w[0]}},
                {{.shape = {rows, columns}, .dtype = DType::kFloat32}});
    const Graph graph = std::move(builder).build();
    return analytic_time_us(graph, *graph.find_op("mm"), *find_device_kind("p100"));
  };
  for (std::int64_t size = 4; size < 1000; size += 4) {
    EXPECT_GE(time(size + 4, 4096, 128), time(size, 4096, 128)) << size;
    EXPECT_GE(time(256, size + 4, 4096), time(256, size, 4096)) << size;
    EXPECT_GE(time(64, 1024, size + 4), time(64, 1024, size)) << size;
  }
}

}  // namespace
}  // namespace emplace
