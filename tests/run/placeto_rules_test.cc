// What the simulator on which Placeto was trained says, as what a search minimises.
#include "run/placeto_rules.h"

#include <gtest/gtest.h>

#include "cluster/presets.h"

#include "sim/placeto.h"

#include "run/portfolio.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

// Ops that exchange 100 us on the bus; the last reads two outputs at once.
std::shared_ptr<const Problem> two_branches(Bytes memory = kUnlimited) {
  GraphBuilder builder("small");
  const auto op = [&](const std::string& name, std::vector<TensorId> inputs, Bytes bytes) {
    return builder.add({.name = name,
                        .type = "compute",
                        .inputs = std::move(inputs),
                        .time_us = {{"k80", Decimal{100, 0}}}},
                       {{.bytes = bytes}, {.bytes = bytes}});
  };
  const auto first = op("first", {}, 760'000);
  const auto left = op("left", {first[0]}, 760'000);
  const auto right = op("right", {first[1]}, 760'000);
  op("last", {left[0], left[1], right[0]}, 1000);
  ClusterSpec spec = preset_cluster("2xk80-placeto");
  for (Device& device : spec.devices) device.memory = memory;
  return placeto_problem(*compile(std::make_shared<const Graph>(std::move(builder).build()),
                                  std::make_shared<const Cluster>(std::move(spec)),
                                  CostMode::kMeasured));
}

Nanoseconds makespan_of(const Problem& problem, const Placement& placement) {
  const std::shared_ptr<const Problem> shared(std::shared_ptr<void>(), &problem);
  return placeto_makespan(problem, placement, Simulator(shared).run(placement, {}));
}

TEST(PlacetoRules, value_a_placement_by_its_makespan) {
  const auto problem = two_branches();
  const auto simulator = std::make_shared<const Simulator>(problem);
  const Evaluator::Measure measure = measured_as_placeto(simulator);
  for (const Placement& placement : {Placement{0, 0, 0, 0}, Placement{0, 0, 1, 0}}) {
    const Evaluation value = measure(placement, ReadyOrder(*problem, {}));
    EXPECT_EQ(value.step, makespan_of(*problem, placement));
    EXPECT_GT(value.step, simulator->run(placement, {}).step) << "the gap after the last op";
    EXPECT_TRUE(value.fits());
  }
}

TEST(PlacetoRules, miss_what_outputs_lack) {
  const Placement placement{0, 0, 1, 0};
  const auto roomy = two_branches();
  const std::vector<Bytes> peaks =
      placeto_peaks(*roomy, placement, Simulator(roomy).run(placement, {}));
  const Bytes memory = peaks[0] - 1000;
  ASSERT_GT(memory, peaks[1]);
  const auto problem = two_branches(memory);
  const Evaluator::Measure measure =
      measured_as_placeto(std::make_shared<const Simulator>(problem));
  EXPECT_EQ(measure(placement, ReadyOrder(*problem, {})).overflow, 1000);
}

TEST(PlacetoRules, value_what_a_search_begins_from) {
  const auto problem = two_branches();
  const auto simulator = std::make_shared<const Simulator>(problem);
  const Placement placement{0, 0, 1, 0};
  PlaceContext context(simulator, StepTime{}, {{.placement = placement}});
  EXPECT_EQ(context.starts()[0].value.step, simulator->run(placement, {}).step);
  context.measure_with(measured_as_placeto(simulator));
  EXPECT_EQ(context.starts()[0].value.step, makespan_of(*problem, placement));
  EXPECT_EQ(context.evaluations(), 0);
}

TEST(PlacetoRules, are_what_a_placer_minimises) {
  const auto problem = two_branches();
  const SubsetProblems problems(problem, StepTime{});
  PortfolioRequest request{.runs = {{.placer = MethodSpec::parse("placeto(workers=2)")}}};
  request.budget.evaluations = 200;
  request.measure = measured_as_placeto(problems.whole());
  const RunResult best = Portfolio(problems, std::move(request)).run().best();
  Nanoseconds least = 0;
  for (DeviceId choice = 0; choice < 16; ++choice) {
    const Placement placement{choice % 2, choice / 2 % 2, choice / 4 % 2, choice / 8};
    const Nanoseconds makespan = makespan_of(*problem, placement);
    if (least == 0 || makespan < least) least = makespan;
  }
  EXPECT_EQ(best.evaluation.step, least);
  EXPECT_EQ(makespan_of(*problem, best.result.placement), least);
}

// By the simulator's own rules nothing fits: each parameter stays on a device, and leaves no room
// there for what is made of both.
TEST(PlacetoRules, do_not_count_weights_that_nothing_reads_any_more) {
  TimedGraph graph;
  const TensorId left = graph.op("left", 100, {graph.parameter("left.weight", 6000)});
  const TensorId right = graph.op("right", 100, {graph.parameter("right.weight", 6000)});
  graph.op("large", 100, {left, right}, 6000);
  const auto problem = placeto_problem(*compile_timed(graph.build(), gpu_cluster(2, 7500)));
  SubsetProblems problems(problem, StepTime{});
  ASSERT_TRUE(problems.why_nothing_fits());
  problems.forget_proofs();
  EXPECT_FALSE(problems.why_nothing_fits());
  EXPECT_EQ(problems.bound().step, 0);
  PortfolioRequest request{.runs = {{.placer = MethodSpec::parse("post")}}};
  request.budget.evaluations = 40;
  request.measure = measured_as_placeto(problems.whole());
  const RunResult best = Portfolio(problems, std::move(request)).run().best();
  EXPECT_TRUE(best.evaluation.fits());
  EXPECT_EQ(best.bound.step, 0);
}

}  // namespace
}  // namespace emplace
