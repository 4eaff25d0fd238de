#include "run/measured_choice.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fork.h"
#include "support/shared_core.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PortfolioResult found_of(const std::vector<Placement>& placements) {
  PortfolioResult found;
  for (const Placement& placement : placements) {
    RunResult run;
    run.run.placer = MethodSpec::parse("heft");
    run.result.placement = placement;
    found.results.push_back(std::move(run));
  }
  return found;
}

std::vector<Solution> promising(const ClusterSpec& cluster,
                                const std::vector<Placement>& placements, int count,
                                int most_devices = 0) {
  return promising_answers(std::make_shared<const Simulator>(fork_on(cluster)),
                           found_of(placements), count, most_devices);
}

std::vector<std::string> origins(const std::vector<Solution>& answers) {
  std::vector<std::string> names;
  for (const Solution& answer : answers) names.push_back(answer.origin);
  return names;
}

TEST(PromisingAnswers, are_sorted_and_differ) {
  // left.weight and left.mm need not be together.
  const auto answers = promising(gpu_cluster(2), {{0, 0, 1, 0}, {0, 0, 1, 0}, {1, 1, 0, 0}}, 10);
  ASSERT_GE(answers.size(), 3U);
  std::set<Placement> seen;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(answers[i].value.fits());
    EXPECT_TRUE(seen.insert(answers[i].placement).second) << answers[i].origin;
    EXPECT_TRUE(i == 0 || !(answers[i].value < answers[i - 1].value));
  }
  EXPECT_EQ(answers[0].value.step, kForkOnTwo);
  EXPECT_EQ(answers[0].origin, "heft");
  EXPECT_THAT(origins(answers), Contains("all on gpu0"));
}

TEST(PromisingAnswers, are_no_more_than_asked_for) {
  EXPECT_THAT(promising(gpu_cluster(2), {{0, 0, 1, 0}}, 1), SizeIs(1));
}

TEST(PromisingAnswers, have_the_best_single_device_among_them) {
  ClusterSpec cluster = gpu_cluster(2);
  cluster.devices[0].slowdown = Decimal{2, 0};
  const auto answers = promising(cluster, {{0, 1, 0, 1}, {0, 0, 1, 1}, {1, 1, 0, 1}}, 2);
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_THAT(origins(answers), Contains("all on gpu1"));
}

TEST(PromisingAnswers, use_no_more_devices_than_allowed) {
  const auto answers = promising(gpu_cluster(3), {{0, 0, 1, 0}, {0, 1, 2, 0}}, 10, 1);
  ASSERT_FALSE(answers.empty());
  for (const Solution& answer : answers) {
    EXPECT_THAT(std::set<DeviceId>(answer.placement.begin(), answer.placement.end()), SizeIs(1));
  }
}

TEST(PromisingAnswers, fit) {
  EXPECT_THAT(promising(gpu_cluster(2, /*memory=*/100), {{0, 0, 1, 0}}, 10), IsEmpty());
  ClusterSpec cluster = gpu_cluster(2);
  cluster.devices[0].memory = 100;
  for (const Solution& answer : promising(cluster, {{0, 0, 1, 0}}, 10)) {
    EXPECT_EQ(answer.placement, Placement(4, 1)) << answer.origin;
  }
}

TEST(PromisingAnswers, are_as_many_as_asked_for_where_no_device_has_room_for_all) {
  constexpr Bytes kEach = 10'000;
  ClusterSpec cluster = gpu_cluster(2, /*memory=*/kEach + 5000);
  const auto problem =
      compile(fork_graph(/*persistent=*/kEach), std::make_shared<const Cluster>(cluster));
  const auto answers = promising_answers(std::make_shared<const Simulator>(problem),
                                         found_of({{0, 0, 1, 0}, {1, 1, 0, 0}}), 2);
  ASSERT_THAT(answers, SizeIs(2));
  for (const Solution& answer : answers) EXPECT_TRUE(answer.value.fits()) << answer.origin;
}

// What was the best for a while is tried as well, with what found it.
TEST(PromisingAnswers, have_what_the_search_found_on_its_way) {
  PortfolioResult found = found_of({{0, 0, 1, 0}});
  found.runners_up.push_back({.placement = {0, 1, 1, 0}, .origin = "anneal"});
  const auto answers =
      promising_answers(std::make_shared<const Simulator>(fork_on(gpu_cluster(2))), found, 10);
  EXPECT_THAT(origins(answers), Contains("anneal"));
}

// A placement that only turns a few short ops around is no other answer.
TEST(PromisingAnswers, differ_by_ops_that_matter) {
  TimedGraph graph;
  graph.op("long", 1000, {});
  graph.op("short", 1, {});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const auto answers =
      promising_answers(std::make_shared<const Simulator>(problem), found_of({{0, 1}, {0, 0}}), 10);
  for (const Solution& answer : answers) {
    EXPECT_NE(answer.placement, Placement(2, 0))
        << "the same as 'long' on gpu0 and 'short' on gpu1";
  }
}

#ifdef EMPLACE_LEARN

class MeasuredChoice : public ::testing::Test {
 protected:
  std::shared_ptr<const Problem> problem_on(const std::shared_ptr<const Cluster>& cluster) const {
    return compile(std::make_shared<const Graph>(
                       zoo::build_model("family:ptb:batch=2,nodes=4,hidden=8,sequence=3")),
                   cluster);
  }
};

TEST_F(MeasuredChoice, executes_all_and_has_the_fastest_first) {
  const auto cluster = shared_core_cluster(2);
  const auto problem = problem_on(cluster);
  int steps = 0;
  Laboratory laboratory(cluster, {}, [&] { ++steps; });
  const Placement alone(problem->num_ops(), 0);
  std::vector<DeviceId> devices(problem->num_groups());
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i] = static_cast<DeviceId>(i % 2);
  const auto tried =
      measure_answers(laboratory, problem,
                      {{.placement = expand_groups(*problem, devices), .origin = "apart"},
                       {.placement = alone, .origin = "alone"}},
                      {.steps = 3, .warm_up = 1});
  ASSERT_THAT(tried, SizeIs(2));
  EXPECT_EQ(steps, 2 * 2 * 4);
  EXPECT_LE(tried[0].measured.median, tried[1].measured.median);
  for (const MeasuredCandidate& candidate : tried) {
    EXPECT_FALSE(candidate.failed());
    EXPECT_GT(candidate.measured.median, 0);
    EXPECT_GT(candidate.predicted, 0);
  }
}

TEST_F(MeasuredChoice, what_cannot_be_executed_comes_last_and_says_why) {
  ClusterSpec spec = shared_core_spec(2);
  spec.devices[0].memory = 1000;
  const auto cluster = std::make_shared<const Cluster>(spec);
  const auto problem = problem_on(cluster);
  Laboratory laboratory(cluster, {.limit_memory = true});
  const auto tried = measure_answers(laboratory, problem,
                                     {{.placement = Placement(problem->num_ops(), 0)},
                                      {.placement = Placement(problem->num_ops(), 1)}},
                                     {.steps = 1, .warm_up = 0});
  ASSERT_THAT(tried, SizeIs(2));
  EXPECT_FALSE(tried[0].failed());
  EXPECT_EQ(tried[0].solution.placement[0], 1);
  EXPECT_TRUE(tried[1].failed());
  EXPECT_THAT(tried[1].failure, HasSubstr("device 'cpu0'"));
}

TEST_F(MeasuredChoice, ends_with_what_it_has_when_cancelled) {
  std::atomic<bool> cancelled{false};
  const auto cluster = shared_core_cluster(2);
  const auto problem = problem_on(cluster);
  int steps = 0;
  Laboratory laboratory(cluster, {.cancelled = &cancelled}, [&] {
    if (++steps == 2) cancelled = true;
  });
  const auto tried = measure_answers(laboratory, problem,
                                     {{.placement = Placement(problem->num_ops(), 0)},
                                      {.placement = Placement(problem->num_ops(), 1)}},
                                     {.steps = 2, .warm_up = 0});
  ASSERT_THAT(tried, SizeIs(1));
  EXPECT_EQ(tried[0].solution.placement[0], 0);
  EXPECT_FALSE(tried[0].failed());
}

TEST_F(MeasuredChoice, what_runs_out_of_memory_costs_as_what_does_not_fit) {
  const auto cluster = shared_core_cluster(1, {}, /*memory=*/1000);
  const auto problem = problem_on(cluster);
  Laboratory laboratory(cluster, {.limit_memory = true});
  const auto cost = measured_costs_of(laboratory, problem, {.steps = 1, .warm_up = 0});
  EXPECT_FALSE(cost(Placement(problem->num_ops(), 0), {}).fits());
}

TEST_F(MeasuredChoice, costs_are_measured_steps) {
  const auto cluster = shared_core_cluster(1);
  const auto problem = problem_on(cluster);
  int steps = 0;
  Laboratory laboratory(cluster, {}, [&] { ++steps; });
  const auto cost = measured_costs_of(laboratory, problem);
  const Evaluation value = cost(Placement(problem->num_ops(), 0), {});
  EXPECT_TRUE(value.fits());
  EXPECT_GT(value.step, 0);
  EXPECT_EQ(steps, 15);
}

#endif

}  // namespace
}  // namespace emplace
