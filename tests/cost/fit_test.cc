// Fitting curves: known ones come back, what was not measured stays, and mistakes are named.
#include "cost/fit.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "graph/graph_builder.h"

#include "cost/cost_model.h"

namespace emplace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeviceKind made_up_kind() {
  DeviceKind kind;
  kind.name = "made-up";
  kind.peak_flops = {{"float32", 2e13}};
  kind.memory_bandwidth = 1e12;
  kind.memory = Bytes{1} << 34;
  kind.launch_us = 7;
  kind.curves = typical_curves();
  return kind;
}

// What the fit is to find.
DeviceKind true_kind() {
  DeviceKind kind = made_up_kind();
  kind.launch_us = 12;
  kind.curves[OpClass::kElementwise] = {
      .launches = 1, .ramp_us = 4, .compute = 0.5, .bandwidth = 0.6};
  kind.curves[OpClass::kReduction] = {
      .launches = 2, .ramp_us = 4, .compute = 0.5, .bandwidth = 0.3};
  kind.curves[OpClass::kMatMul] = {.launches = 1.5,
                                   .ramp_us = 15,
                                   .compute = 0.55,
                                   .bandwidth = 0.8,
                                   .half_tiles = 20,
                                   .unaligned = 0.4};
  return kind;
}

// Ops of many sizes, timed as the kind says, with errors of up to `noise`; `host` slows launches.
Graph timed_graph(const std::string& name, DeviceKind kind, std::uint64_t seed, double host = 1,
                  double noise = 0) {
  kind.launch_us *= host;
  Rng rng(seed);
  const auto build = [&](const std::vector<double>& times) {
    GraphBuilder builder(name);
    Rng shapes(seed);
    std::size_t next = 0;
    const auto time = [&] {
      const double us = next < times.size() ? times[next] : 1;
      ++next;
      return std::vector<std::pair<std::string, Decimal>>{{"made-up", Decimal::from_double(us, 4)}};
    };
    for (int i = 0; i < 120; ++i) {
      const std::int64_t rows = std::int64_t{1} << shapes.below(12);
      const std::int64_t columns = 4 + 4 * static_cast<std::int64_t>(shapes.below(1024));
      const std::string id = std::to_string(i);
      const TensorSpec matrix{.shape = {rows, columns}, .dtype = DType::kFloat32};
      const TensorSpec weight{.shape = {columns, columns}, .dtype = DType::kFloat32};
      const auto x = builder.add({.name = "x" + id, .type = "input"}, {matrix});
      const auto w = builder.add({.name = "w" + id, .type = "parameter"}, {weight});
      builder.add({.name = "relu" + id, .type = "relu", .inputs = x, .time_us = time()}, {matrix});
      builder.add({.name = "sum" + id, .type = "sum", .inputs = x, .time_us = time()},
                  {{.shape = {rows}, .dtype = DType::kFloat32}});
      builder.add({.name = "mm" + id, .type = "mm", .inputs = {x[0], w[0]}, .time_us = time()},
                  {matrix});
    }
    return std::move(builder).build();
  };
  const Graph shapes = build({});
  std::vector<double> times;
  WorkReader reader(shapes);
  for (OpId op = 0; op < shapes.num_ops(); ++op) {
    if (shapes.is_source(op)) continue;
    const double error = 1 + noise * (2 * rng.uniform() - 1);
    times.push_back(work_time_us(reader.work(op), kind) * error);
  }
  return build(times);
}

TEST(Fit, recovers_the_curves_that_made_the_times) {
  const Graph one = timed_graph("one", true_kind(), 1);
  const Graph two = timed_graph("two", true_kind(), 2);
  const std::vector<const Graph*> graphs{&one, &two};
  const DeviceKind fitted = fit_curves(graphs, "made-up", made_up_kind());
  EXPECT_NEAR(fitted.launch_us, 12, 0.6);
  EXPECT_EQ(fitted.curves[OpClass::kElementwise].launches, 1);
  EXPECT_NEAR(fitted.curves[OpClass::kElementwise].bandwidth, 0.6, 0.03);
  EXPECT_NEAR(fitted.curves[OpClass::kReduction].launches, 2, 0.1);
  EXPECT_NEAR(fitted.curves[OpClass::kReduction].bandwidth, 0.3, 0.02);
  EXPECT_NEAR(fitted.curves[OpClass::kMatMul].compute, 0.55, 0.05);
  for (const Graph* graph : graphs) {
    const FitError error = graph_error(*graph, "made-up", fitted);
    EXPECT_EQ(error.ops, 360);
    EXPECT_LT(std::abs(error.total_error()), 0.02) << error.name;
    EXPECT_LT(error.op_error, 0.05) << error.name;
  }
}

TEST(Fit, stands_noise_and_hosts_of_different_speed) {
  const Graph fast = timed_graph("fast", true_kind(), 1, 0.7, 0.2);
  const Graph slow = timed_graph("slow", true_kind(), 2, 1.4, 0.2);
  const Graph usual = timed_graph("usual", true_kind(), 3, 1, 0.2);
  const std::vector<const Graph*> graphs{&fast, &slow, &usual};
  const DeviceKind fitted = fit_curves(graphs, "made-up", made_up_kind());
  EXPECT_NEAR(fitted.curves[OpClass::kReduction].bandwidth, 0.3, 0.03);
  EXPECT_NEAR(fitted.curves[OpClass::kReduction].launches, 2, 0.2);
  EXPECT_GT(fitted.launch_us, 12 * 0.7);
  EXPECT_LT(fitted.launch_us, 12 * 1.4);
}

TEST(Fit, is_the_same_every_time) {
  const Graph graph = timed_graph("one", true_kind(), 5, 1, 0.3);
  const std::vector<const Graph*> graphs{&graph};
  const DeviceKind once = fit_curves(graphs, "made-up", made_up_kind());
  const DeviceKind again = fit_curves(graphs, "made-up", made_up_kind());
  EXPECT_EQ(once.launch_us, again.launch_us);
  EXPECT_EQ(once.curves, again.curves);
}

TEST(Fit, classes_without_measurements_keep_their_curves) {
  const Graph graph = timed_graph("one", true_kind(), 1);
  const std::vector<const Graph*> graphs{&graph};
  const DeviceKind start = made_up_kind();
  const DeviceKind fitted = fit_curves(graphs, "made-up", start);
  EXPECT_EQ(fitted.curves[OpClass::kConvolution], start.curves[OpClass::kConvolution]);
  EXPECT_EQ(fitted.curves[OpClass::kLayerNorm], start.curves[OpClass::kLayerNorm]);
  EXPECT_EQ(fitted.peak_flops, start.peak_flops);
}

TEST(Fit, leaving_a_graph_out_does_not_look_at_it) {
  DeviceKind slower = true_kind();
  slower.curves[OpClass::kReduction].bandwidth = 0.05;
  const Graph one = timed_graph("one", true_kind(), 1);
  const Graph two = timed_graph("two", true_kind(), 2);
  const Graph odd = timed_graph("odd", slower, 3);
  const std::vector<const Graph*> graphs{&one, &two, &odd};
  const std::vector<FitError> left_out = leave_one_out(graphs, "made-up", made_up_kind());
  ASSERT_EQ(left_out.size(), 3U);
  const std::vector<const Graph*> others{&one, &two};
  const FitError direct =
      graph_error(odd, "made-up", fit_curves(others, "made-up", made_up_kind()));
  EXPECT_EQ(left_out[2].fitted_us, direct.fitted_us);
  EXPECT_LT(left_out[2].total_error(), -0.05);
}

TEST(Fit, estimates_the_peaks_of_unknown_hardware) {
  const Graph graph = timed_graph("one", true_kind(), 1);
  const std::vector<const Graph*> graphs{&graph};
  const DeviceKind start = unknown_kind(graphs, "made-up", "mine");
  EXPECT_EQ(start.name, "mine");
  EXPECT_GT(start.memory_bandwidth, 0.5e12);
  EXPECT_LT(start.memory_bandwidth, 1.2e12);
  const DeviceKind fitted = fit_curves(graphs, "made-up", start);
  EXPECT_LT(std::abs(graph_error(graph, "made-up", fitted).total_error()), 0.05);
}

TEST(Fit, sums_errors_up_by_class) {
  const Graph graph = timed_graph("one", true_kind(), 1);
  const std::vector<const Graph*> graphs{&graph};
  const std::vector<FitError> errors = class_errors(graphs, "made-up", true_kind());
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].name, "matmul");
  EXPECT_EQ(errors[1].name, "elementwise");
  EXPECT_EQ(errors[2].name, "reduction");
  double total = 0;
  for (const FitError& error : errors) {
    EXPECT_EQ(error.ops, 120);
    EXPECT_LT(error.op_error, 1e-3);
    total += error.measured_us;
  }
  EXPECT_NEAR(total, graph_error(graph, "made-up", true_kind()).measured_us, 1e-6 * total);
}

TEST(Fit, says_what_is_missing) {
  const Graph graph = timed_graph("one", true_kind(), 1);
  const std::vector<const Graph*> graphs{&graph};
  EXPECT_THAT(measured_devices(graphs), ElementsAre("made-up"));
  const auto message = [](const auto& body) -> std::string {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message([&] { fit_curves(graphs, "other", made_up_kind()); }),
              HasSubstr("no op has a measured time for 'other'"));
  EXPECT_THAT(message([&] { unknown_kind(graphs, "other", "x"); }), HasSubstr("'other'"));
}

}  // namespace
}  // namespace emplace
