// The lower bound that every report shows is below every placement that fits, whatever its
// schedule.
#include "bound/lower_bound.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/simulator.h"
#include "sim/throughput.h"

#include "placer/evaluator.h"

#include "support/all_placements.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

TEST(LowerBound, is_below_every_fitting_random_placement) {
  int fitting = 0;
  for (std::uint64_t i = 0; i < 1500; ++i) {
    Rng rng = Rng(41).split(i);
    const auto problem = random_problem(rng, {.max_ops = 1 + i / 40});
    const LowerBound bound = lower_bound(*problem);
    ASSERT_GE(bound.step, 0);
    ASSERT_FALSE(bound.reason.empty());
    for (int j = 0; j < 8; ++j) {
      const Placement placement = random_placement(*problem, rng);
      const Schedule schedule = random_schedule(*problem, rng);
      const Timeline timeline = Simulator(problem).run(placement, schedule);
      if (!timeline.fits()) continue;
      ++fitting;
      ASSERT_LE(bound.step, timeline.step) << bound.reason << "\n"
                                           << describe(*problem, placement, schedule);
    }
  }
  EXPECT_GT(fitting, 1000);
}

TEST(LowerBound, is_below_the_best_of_all_placements_of_small_problems) {
  int compared = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    Rng rng = Rng(43).split(i);
    const auto problem = random_problem(rng, {.max_ops = 6, .max_devices = 3});
    const Nanoseconds bound = lower_bound(*problem).step;
    const Simulator simulator(problem);
    const auto workspace = simulator.make_workspace();
    const Schedule priorities = random_schedule(*problem, rng);
    const Nanoseconds bound_of_all = lower_bound(*problem, false).step;
    for_each_placement(*problem, [&](const Placement& placement) {
      for (const Schedule& schedule : {Schedule{}, priorities}) {
        const Evaluation value =
            simulator.evaluate(placement, ReadyOrder(*problem, schedule), *workspace);
        ASSERT_LE(bound_of_all, value.step) << describe(*problem, placement, schedule);
        if (!value.fits()) continue;
        ++compared;
        ASSERT_LE(bound, value.step) << lower_bound(*problem).reason << "\n"
                                     << describe(*problem, placement, schedule);
      }
    });
  }
  EXPECT_GT(compared, 3000);
}

TEST(WhyNothingFits, speaks_only_where_no_placement_of_a_small_problem_fits) {
  int spoke = 0;
  int missed = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    Rng rng = Rng(47).split(i);
    const auto problem = random_problem(rng, {.max_ops = 7, .max_devices = 3});
    const auto reason = why_nothing_fits(*problem);
    if (!reason) {
      const Simulator simulator(problem);
      const auto workspace = simulator.make_workspace();
      bool any = false;
      for_each_placement(*problem, [&](const Placement& placement) {
        any = any || simulator.evaluate(placement, {}, *workspace).fits();
      });
      missed += any ? 0 : 1;
      continue;
    }
    ++spoke;
    ASSERT_FALSE(reason->empty());
    const Simulator simulator(problem);
    const auto workspace = simulator.make_workspace();
    for_each_placement(*problem, [&](const Placement& placement) {
      ASSERT_FALSE(simulator.evaluate(placement, {}, *workspace).fits())
          << *reason << "\n"
          << describe(*problem, placement, {});
    });
  }
  EXPECT_GT(spoke, 500);
  EXPECT_LT(missed, spoke / 4);
}

TEST(WhyNothingFits, sees_tensors_that_wait_for_the_end) {
  // Five tensors of 1000 bytes wait while the last of them is made: two devices of 2000 are too
  // few, two of 3000 are not.
  const auto problem = [](Bytes memory) {
    TimedGraph graph;
    std::vector<TensorId> made{graph.op("made0", 1, {})};
    for (int i = 1; i < 5; ++i)
      made.push_back(graph.op(fmt::format("made{}", i), 1, {made.back()}));
    TensorId sum = made[4];
    for (int i = 3; i >= 0; --i) {
      sum = graph.op(fmt::format("used{}", i), 1, {made[i], sum}, 0);
    }
    return compile_timed(graph.build(), gpu_cluster(2, memory));
  };
  const auto reason = why_nothing_fits(*problem(2400));
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("made4"), std::string::npos) << *reason;
  EXPECT_FALSE(why_nothing_fits(*problem(3000)));
}

TEST(WhyNothingFits, sees_that_the_devices_of_some_ops_are_too_small_for_them) {
  const auto problem = [](Bytes each) {
    TimedGraph graph;
    for (const char* name : {"a", "b", "c"}) {
      OpSpec spec{.name = name, .type = "compute", .persistent_bytes = each};
      spec.devices = {"gpu0", "gpu2"};
      graph.add(spec, 1, 0);
    }
    return compile_timed(graph.build(), gpu_cluster(3, 1000));
  };
  const auto reason = why_nothing_fits(*problem(700));
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("the devices that may hold them"), std::string::npos) << *reason;
  EXPECT_TRUE(why_nothing_fits(*problem(700), MemoryRule::kStream));
  EXPECT_FALSE(why_nothing_fits(*problem(500)));
}

TEST(WhyNothingFits, and_the_period_bound_hold_for_every_stream_of_small_problems) {
  int spoke = 0;
  int tight = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    Rng rng = Rng(53).split(i);
    const auto problem = random_problem(rng, {.max_ops = 6, .max_devices = 3});
    const auto reason = why_nothing_fits(*problem, MemoryRule::kStream);
    const Nanoseconds bound = period_lower_bound(*problem).step;
    spoke += reason ? 1 : 0;
    for_each_placement(*problem, [&](const Placement& placement) {
      for (const Overlap overlap : {Overlap::kFull, Overlap::kNone}) {
        const ThroughputResult stream = throughput(*problem, placement, overlap);
        ASSERT_LE(bound, stream.period) << describe(*problem, placement, {});
        tight += bound == stream.period ? 1 : 0;
        bool fits = true;
        for (DeviceId device = 0; device < problem->num_devices(); ++device) {
          fits = fits && stream.memory[device] <= problem->cluster().device(device).memory;
        }
        ASSERT_FALSE(reason && fits) << *reason << "\n" << describe(*problem, placement, {});
      }
    });
  }
  EXPECT_GT(spoke, 20);
  EXPECT_GT(tight, 20);
}

TEST(WhyNothingFits, sees_that_a_cluster_is_too_small_and_that_one_is_not) {
  EXPECT_TRUE(why_nothing_fits(*tiny_case("big_parameters_on_two_with_no_room").problem));
  EXPECT_FALSE(why_nothing_fits(*tiny_case("big_parameters_on_two_tight").problem));
  EXPECT_FALSE(why_nothing_fits(*tiny_case("big_parameters_on_one_device").problem));
}

TEST(LowerBound, is_below_all_placements_of_the_tiny_cases) {
  for (const TinyCase& tiny : tiny_cases()) {
    const Problem& problem = *tiny.problem;
    const Nanoseconds bound = lower_bound(problem).step;
    const Simulator simulator(tiny.problem);
    const auto workspace = simulator.make_workspace();
    std::vector<std::size_t> digits(problem.num_groups(), 0);
    int left = 2000;  // four devices and ten ops have a million placements
    do {
      const Placement placement = placement_of(problem, digits);
      const Evaluation value = simulator.evaluate(placement, {}, *workspace);
      if (!value.fits()) continue;
      ASSERT_LE(bound, value.step) << tiny.name;
    } while (--left > 0 && next_assignment(problem, digits));
  }
}

TEST(LowerBound, knows_that_a_chain_cannot_be_faster_than_its_ops_in_a_row) {
  EXPECT_GE(lower_bound(*tiny_case("chain_on_two_equal").problem).step, 400'000);
  EXPECT_GE(lower_bound(*tiny_case("only_control_on_four_on_a_bus").problem).step, 300'000);
}

TEST(LowerBound, knows_that_work_is_shared_among_all_devices_at_best) {
  EXPECT_GE(lower_bound(*tiny_case("fork_join_on_one_device").problem).step, 2'500'000);
  EXPECT_GE(lower_bound(*tiny_case("disconnected_on_two_equal").problem).step, 250'000);
}

TEST(LowerBound, is_the_step_time_of_a_single_op) {
  EXPECT_EQ(lower_bound(*tiny_case("one_op_on_one_device").problem).step, 100'000);
}

}  // namespace
}  // namespace emplace
