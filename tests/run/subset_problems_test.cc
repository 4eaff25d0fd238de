#include "run/subset_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/portfolio.h"
#include "run/problem_request.h"
#include "support/error_text.h"
#include "support/fork.h"
#include "support/with_cpu.h"

namespace emplace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Solution start(Placement placement, const std::string& name) {
  return {.placement = std::move(placement), .origin = name};
}

TEST(SubsetProblems, are_the_whole_problem_where_all_devices_may_be_used) {
  for (const int most : {0, 3, 9}) {
    const SubsetProblems problems(fork_on(gpu_cluster(3)), {}, most);
    ASSERT_EQ(problems.list().size(), 1U);
    EXPECT_EQ(problems.list()[0].simulator, problems.whole());
    EXPECT_THAT(problems.list()[0].devices, ElementsAre(0, 1, 2));
    EXPECT_TRUE(problems.complete());
    EXPECT_EQ(problems.bound().step, kForkBound);
  }
}

TEST(SubsetProblems, have_at_most_as_many_devices_as_wanted) {
  ClusterSpec cluster = gpu_cluster(4);
  cluster.devices[3].slowdown = Decimal{4, 0};
  const SubsetProblems problems(fork_on(cluster), {}, 2);
  ASSERT_FALSE(problems.list().empty());
  for (const SubsetProblem& subset : problems.list()) {
    EXPECT_EQ(subset.devices.size(), 2U);
    EXPECT_EQ(subset.simulator->problem().num_devices(), 2);
  }
  EXPECT_THAT(problems.list()[0].devices, ElementsAre(0, 1)) << "the fastest first";
  EXPECT_EQ(problems.bound().step, kForkBound) << "the lowest of the subsets'";
}

TEST(SubsetProblems, bound_of_one_device_is_its_work) {
  const SubsetProblems problems(fork_on(gpu_cluster(3)), {}, 1);
  EXPECT_EQ(problems.bound().step, kForkOnOne);
}

TEST(SubsetProblems, value_and_sort_the_starts) {
  const SubsetProblems problems(fork_on(gpu_cluster(2)), {}, 0,
                                {start({0, 0, 0, 0}, "one"), start({0, 0, 1, 0}, "two")});
  ASSERT_EQ(problems.starts().size(), 2U);
  EXPECT_EQ(problems.starts()[0].origin, "two");
  EXPECT_EQ(problems.starts()[0].value.step, kForkOnTwo);
  EXPECT_EQ(problems.starts()[1].value.step, kForkOnOne);
}

TEST(SubsetProblems, begin_with_the_devices_of_the_best_start) {
  const SubsetProblems problems(fork_on(gpu_cluster(4)), {}, 2, {start({3, 3, 2, 3}, "mine")});
  EXPECT_THAT(problems.list()[0].devices, ElementsAre(2, 3));
  ASSERT_EQ(problems.list()[0].starts.size(), 1U);
  EXPECT_THAT(problems.list()[0].starts[0].placement, ElementsAre(1, 1, 0, 1))
      << "in the subset's numbers";
}

TEST(SubsetProblems, refuse_a_start_that_uses_more_devices) {
  EXPECT_EQ(error_text([] {
              SubsetProblems(fork_on(gpu_cluster(3)), {}, 1, {start({0, 0, 1, 0}, "mine.json")});
            }),
            "mine.json: uses 2 devices; at most 1 were asked for");
}

TEST(SubsetProblems, refuse_pins_that_so_few_devices_cannot_keep) {
  const CompileOptions options{.rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "left=gpu0"),
                                         DeviceRule::parse(DeviceRule::Kind::kPin, "right=gpu1")}};
  EXPECT_THAT(error_text([&] { SubsetProblems(fork_on(gpu_cluster(3), options), {}, 1); }),
              AllOf(HasSubstr("at most 1 device"), HasSubstr("may run every op")));
}

TEST(SubsetProblems, say_why_nothing_fits) {
  const auto problem = [](Bytes memory) {
    return compile_timed(fork_graph(3000), gpu_cluster(2, memory));
  };
  EXPECT_FALSE(SubsetProblems(problem(6500), {}).why_nothing_fits());
  const SubsetProblems none(problem(1000), {});
  ASSERT_TRUE(none.why_nothing_fits());
  EXPECT_EQ(none.bound().step, 0) << "nothing is known of what there is not";
  const SubsetProblems on_one(problem(6500), {}, 1);
  ASSERT_TRUE(on_one.why_nothing_fits());
  EXPECT_THAT(*on_one.why_nothing_fits(), HasSubstr("on 1 device: "));
}

TEST(SubsetProblems, refuse_a_device_without_links) {
  ClusterSpec cluster = gpu_cluster(2);
  cluster.links.clear();
  EXPECT_THAT(error_text([&] { SubsetProblems(fork_on(cluster), {}); }),
              AllOf(HasSubstr("device 'gpu0'"), HasSubstr("no link")));
}

TEST(SubsetProblems, leave_cpus_out_where_the_rest_has_room) {
  const SubsetProblems problems(ops_with_cpu({0, 0}), {}, 0, {}, CpuUse::kIfNeeded);
  ASSERT_EQ(problems.list().size(), 1U);
  EXPECT_THAT(problems.list()[0].devices, ElementsAre(0, 1));
  EXPECT_TRUE(problems.leaves_cpus_out());
  EXPECT_EQ(problems.whole()->problem().num_devices(), 3);
}

TEST(SubsetProblems, use_cpus_when_asked) {
  const SubsetProblems always(ops_with_cpu({0, 0}), {}, 0, {}, CpuUse::kAlways);
  EXPECT_THAT(always.list()[0].devices, ElementsAre(0, 1, 2));
  EXPECT_FALSE(always.leaves_cpus_out());
  CompileOptions pinned;
  pinned.rules = {DeviceRule::parse(DeviceRule::Kind::kPin, "op0=cpu0")};
  const SubsetProblems pin(ops_with_cpu({0, 0}, kUnlimited, pinned), {}, 0, {}, CpuUse::kIfNeeded);
  EXPECT_THAT(pin.list()[0].devices, ElementsAre(0, 1, 2));
  EXPECT_FALSE(pin.leaves_cpus_out());
  const SubsetProblems begun(ops_with_cpu({0, 0}), {}, 0, {start({0, 2}, "mine")},
                             CpuUse::kIfNeeded);
  EXPECT_THAT(begun.list()[0].devices, ElementsAre(0, 1, 2));
}

TEST(SubsetProblems, use_cpus_where_nothing_fits_without) {
  const SubsetProblems problems(ops_with_cpu({4000, 4000}, 3000), {}, 0, {}, CpuUse::kIfNeeded);
  ASSERT_EQ(problems.list().size(), 1U);
  EXPECT_THAT(problems.list()[0].devices, ElementsAre(0, 1, 2));
  EXPECT_FALSE(problems.leaves_cpus_out());
  EXPECT_FALSE(problems.why_nothing_fits());
}

TEST(SubsetProblems, choose_few_devices_among_the_accelerators) {
  const SubsetProblems one(ops_with_cpu({0, 0}), {}, 1, {}, CpuUse::kIfNeeded);
  ASSERT_EQ(one.list().size(), 1U) << "both are alike";
  EXPECT_THAT(one.list()[0].devices, ElementsAre(0));
  const SubsetProblems begun(ops_with_cpu({0, 0}), {}, 1, {start({1, 1}, "mine")},
                             CpuUse::kIfNeeded);
  EXPECT_THAT(begun.list()[0].devices, ElementsAre(1));
  const SubsetProblems two(ops_with_cpu({0, 0}), {}, 2, {}, CpuUse::kIfNeeded);
  ASSERT_EQ(two.list().size(), 1U);
  EXPECT_THAT(two.list()[0].devices, ElementsAre(0, 1));
}

TEST(SubsetProblems, keep_cpus_for_the_last_where_nobody_knows) {
  const SubsetProblems problems(packing_problem(), {}, 0, {}, CpuUse::kIfNeeded);
  ASSERT_EQ(problems.list().size(), 2U);
  EXPECT_THAT(problems.list()[0].devices, ElementsAre(0, 1));
  EXPECT_FALSE(problems.list()[0].last_resort);
  EXPECT_THAT(problems.list()[1].devices, ElementsAre(0, 1, 2));
  EXPECT_TRUE(problems.list()[1].last_resort);
}

// The accelerators together hold it, one does not: then a CPU may.
TEST(SubsetProblems, of_few_devices_have_the_cpu_where_no_accelerator_holds_it) {
  const auto problem =
      load_problem({.model = "zoo:alexnet:batch=4", .cluster = "2xp100@435MiB+cpu"});
  const SubsetProblems one(problem, {}, 1, {}, CpuUse::kIfNeeded);
  EXPECT_FALSE(one.why_nothing_fits());
  const SubsetProblems never(problem, {}, 1, {}, CpuUse::kNever);
  EXPECT_TRUE(never.why_nothing_fits());
}

// What is proven without CPUs does not hold for a run that needs one.
TEST(SubsetProblems, that_leave_cpus_out_bound_what_is_on_them_too) {
  const auto problem =
      load_problem({.model = "zoo:alexnet:batch=4", .cluster = "2xp100@435MiB+cpu"});
  const SubsetProblems problems(problem, {}, 0, {}, CpuUse::kIfNeeded);
  Budget budget;
  budget.evaluations = 200;
  const PortfolioResult found =
      Portfolio(problems, {.runs = make_runs("single,auto", "own"), .budget = budget}).run();
  const Assessor assessor = assessor_of(problems, found);
  for (const RunResult& run : found.results) {
    const Assessment answer = assess(assessor, problems, run);
    EXPECT_LE(answer.bound.step, answer.time()) << run.run.placer.to_string();
  }
}

}  // namespace
}  // namespace emplace
