// Sources of op times: who is asked first, and sources of a caller's own.
#include "cost/cost_source.h"

#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/device_kinds.h"
#include "graph/graph_builder.h"

#include "cost/problem.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Microseconds by op, or by op and device: "mm", "mm@gpu1".
class Table final : public CostSource {
 public:
  using Times = std::map<std::string, Decimal>;
  explicit Table(Times times) : times_(std::move(times)) {}

  std::string_view name() const override { return "table"; }
  std::optional<Decimal> time_us(const Query& query) const override {
    const std::string op(query.graph.op_name(query.op));
    for (const std::string& key : {op + "@" + query.device.name, op}) {
      if (const auto found = times_.find(key); found != times_.end()) return found->second;
    }
    return std::nullopt;
  }

 private:
  Times times_;
};

std::shared_ptr<const CostSource> table(Table::Times times) {
  return std::make_shared<const Table>(std::move(times));
}

// x -> mm, measured at 40 us -> relu, not measured.
std::shared_ptr<const Graph> two_ops() {
  const TensorSpec matrix{.shape = {100, 100}, .dtype = DType::kFloat32};
  GraphBuilder builder("two");
  const auto x = builder.add({.name = "x", .type = "input"}, {matrix});
  const auto y = builder.add(
      {.name = "mm", .type = "MatMul", .inputs = {x[0], x[0]}, .time_us = {{"p100", {40, 0}}}},
      {matrix});
  builder.add({.name = "relu", .type = "Relu", .inputs = y}, {matrix});
  return std::make_shared<const Graph>(std::move(builder).build());
}

// gpu1 takes one and a half times as long as gpu0.
std::shared_ptr<const Cluster> two_gpus() {
  ClusterSpec spec;
  spec.name = "two";
  spec.devices = {
      {.name = "gpu0", .kind = "p100", .memory = kUnlimited},
      {.name = "gpu1", .kind = "p100", .memory = kUnlimited, .slowdown = Decimal{15, -1}}};
  spec.links = {{.bandwidth = 1'000'000'000}};
  return std::make_shared<const Cluster>(spec);
}

std::shared_ptr<const Problem> compiled_from(CostSources sources) {
  return compile(two_ops(), two_gpus(), CompileOptions{.sources = std::move(sources)});
}

std::string refusal_of_sources(CostSources sources) {
  try {
    compiled_from(std::move(sources));
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

constexpr OpId kMatMul = 1;
constexpr OpId kRelu = 2;

TEST(CostSource, modes_are_lists_of_sources) {
  const auto names = [](CostMode mode) {
    std::string text;
    for (const auto& source : cost_sources(mode)) text += std::string(source->name()) + " ";
    return text;
  };
  EXPECT_EQ(names(CostMode::kAuto), "measured analytic ");
  EXPECT_EQ(names(CostMode::kMeasured), "measured ");
  EXPECT_EQ(names(CostMode::kAnalytic), "analytic ");
}

TEST(CostSource, the_first_that_knows_a_time_decides) {
  const auto first = compiled_from({table({{"mm", {7, 0}}}), measured_costs(), analytic_costs()});
  EXPECT_EQ(first->duration(kMatMul, 0), 7'000);
  const auto last = compiled_from({measured_costs(), table({{"mm", {7, 0}}, {"relu", {3, 0}}})});
  EXPECT_EQ(last->duration(kMatMul, 0), 40'000);
  EXPECT_EQ(last->duration(kRelu, 0), 3'000);
  const auto estimated = compile(two_ops(), two_gpus(), CostMode::kAnalytic);
  EXPECT_EQ(first->duration(kRelu, 0), estimated->duration(kRelu, 0));
}

TEST(CostSource, slowdowns_count_on_top) {
  const auto problem = compiled_from({table({{"mm", {75, -1}}, {"relu", {1, 0}}})});
  EXPECT_EQ(problem->duration(kMatMul, 0), 7'500);
  EXPECT_EQ(problem->duration(kMatMul, 1), 11'250);
}

TEST(CostSource, may_tell_devices_of_one_kind_apart) {
  ClusterSpec spec = two_gpus()->spec();
  spec.devices[1].slowdown = {1, 0};
  const auto problem = compile(
      two_ops(), std::make_shared<const Cluster>(spec),
      CompileOptions{.sources = {table({{"mm", {5, 0}}, {"mm@gpu1", {6, 0}}, {"relu", {1, 0}}})}});
  EXPECT_EQ(problem->duration(kMatMul, 0), 5'000);
  EXPECT_EQ(problem->duration(kMatMul, 1), 6'000);
}

// Equal devices have the same times though ops are pinned to them; not where a time names one.
TEST(CostSource, pins_do_not_tell_devices_apart) {
  ClusterSpec spec = two_gpus()->spec();
  spec.devices[1].slowdown = {1, 0};
  const auto measured = [&](const std::string& device) {
    const TensorSpec matrix{.shape = {10, 10}, .dtype = DType::kFloat32};
    GraphBuilder builder("pinned");
    for (const char* pin : {"gpu0", "gpu1"}) {
      builder.add({.name = std::string("on ") + pin,
                   .type = "Relu",
                   .time_us = {{"p100", {40, 0}}, {device, {50, 0}}},
                   .devices = {pin}},
                  {matrix});
    }
    return compile(std::make_shared<const Graph>(std::move(builder).build()),
                   std::make_shared<const Cluster>(spec), CostMode::kMeasured);
  };
  EXPECT_EQ(measured("v100")->cost_origin("measured").ops, 2);
  EXPECT_EQ(measured("v100")->duration(1, 1), 40'000);
  EXPECT_EQ(measured("gpu1")->cost_origin("measured").ops, 4);
  EXPECT_EQ(measured("gpu1")->duration(1, 1), 50'000);
}

TEST(CostSource, origins_say_what_each_gave) {
  const auto problem =
      compiled_from({table({{"relu", {10, 0}}}), measured_costs(), analytic_costs()});
  ASSERT_EQ(problem->cost_origins().size(), 3U);
  EXPECT_EQ(problem->cost_origins()[0].source, "table");
  EXPECT_EQ(problem->cost_origin("table").ops, 2);  // on either device
  EXPECT_DOUBLE_EQ(problem->cost_origin("table").share, 0.2);
  EXPECT_EQ(problem->cost_origin("measured").ops, 2);
  EXPECT_DOUBLE_EQ(problem->cost_origin("measured").share, 0.8);
  EXPECT_EQ(problem->cost_origin("analytic").ops, 0);
  EXPECT_EQ(problem->cost_origin("other").ops, 0);
}

TEST(CostSource, refusals_name_ops_and_sources) {
  EXPECT_THAT(refusal_of_sources({table({{"mm", {7, 0}}})}),
              AllOf(HasSubstr("1 ops have no table time for 'gpu0'"), HasSubstr("relu")));
  EXPECT_THAT(refusal_of_sources({table({}), measured_costs()}),
              HasSubstr("no table or measured time"));
  EXPECT_THAT(refusal_of_sources({table({{"mm", {-7, 0}}})}),
              HasSubstr("op 'mm': its table time on 'gpu0' is negative"));
}

// What may not run somewhere needs no time there.
TEST(CostSource, devices_that_are_not_allowed_need_no_times) {
  CompileOptions options{.sources = {table({{"mm@gpu0", {7, 0}}, {"relu@gpu0", {1, 0}}})}};
  options.rules = {DeviceRule::parse(DeviceRule::Kind::kForbid, "*=gpu1")};
  const auto problem = compile(two_ops(), two_gpus(), options);
  EXPECT_EQ(problem->duration(kMatMul, 0), 7'000);
  EXPECT_EQ(problem->duration(kMatMul, 1), 0);
}

// Devices of one kind share their times, whichever of them an op may use.
TEST(CostSource, an_op_that_may_use_the_second_device_of_a_kind_alone_has_its_time) {
  ClusterSpec spec = two_gpus()->spec();
  spec.devices[1].slowdown = Decimal{1, 0};
  const auto cluster = std::make_shared<const Cluster>(spec);
  CompileOptions pinned;
  pinned.rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "*=gpu1")};
  const auto free = compile(two_ops(), cluster);
  const auto problem = compile(two_ops(), cluster, pinned);
  for (OpId op = 0; op < problem->num_ops(); ++op) {
    EXPECT_EQ(problem->duration(op, 1), free->duration(op, 1)) << free->graph().op_name(op);
  }
}

}  // namespace
}  // namespace emplace
