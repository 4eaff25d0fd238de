// The bounds that a search proves are below every placement that fits, whatever its schedule, and
// as high as can be seen by hand where that is possible.
#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/simulator.h"

#include "bound/lower_bound.h"
#include "support/all_placements.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

constexpr Nanoseconds kNoUpper = std::numeric_limits<Nanoseconds>::max();

struct Best {
  Nanoseconds step = kNoUpper;  // of those that fit
  Placement placement = {};
  Schedule schedule = {};
};

// Over all placements, in FIFO order and several others.
Best best_of_all(const std::shared_ptr<const Problem>& problem, Rng& rng) {
  const Simulator simulator(problem);
  const auto workspace = simulator.make_workspace();
  std::vector<Schedule> schedules(1);
  for (int i = 0; i < 3; ++i) schedules.push_back(random_schedule(*problem, rng));
  Best best;
  for_each_placement(*problem, [&](const Placement& placement) {
    for (const Schedule& schedule : schedules) {
      const Evaluation value =
          simulator.evaluate(placement, ReadyOrder(*problem, schedule), *workspace);
      if (value.fits() && value.step < best.step) best = {value.step, placement, schedule};
    }
  });
  return best;
}

TEST(ImproveBound, is_below_the_best_of_all_placements_of_small_problems) {
  int compared = 0;
  int met = 0;
  for (std::uint64_t i = 0; i < 2500; ++i) {
    Rng rng = Rng(61).split(i);
    const auto problem = random_problem(rng, {.max_ops = 7, .max_devices = 3});
    const Best best = best_of_all(problem, rng);
    if (best.step == kNoUpper) continue;
    ++compared;
    const LowerBound free = improve_bound(*problem, kNoUpper, {});
    ASSERT_LE(free.step, best.step) << free.reason << "\n"
                                    << describe(*problem, best.placement, best.schedule);
    const LowerBound told = improve_bound(*problem, best.step + 1, {});
    ASSERT_LE(told.step, best.step) << told.reason << "\n"
                                    << describe(*problem, best.placement, best.schedule);
    met += told.step == best.step ? 1 : 0;
  }
  EXPECT_GT(compared, 1500);
  EXPECT_GT(met, compared / 2);
}

TEST(ImproveBound, is_below_every_fitting_random_placement_of_larger_problems) {
  int fitting = 0;
  for (std::uint64_t i = 0; i < 1500; ++i) {
    Rng rng = Rng(67).split(i);
    const auto problem = random_problem(rng, {.max_ops = 1 + i / 30, .max_devices = 6});
    const Simulator simulator(problem);
    const auto workspace = simulator.make_workspace();
    Best best;
    for (int j = 0; j < 30; ++j) {
      const Placement placement = random_placement(*problem, rng);
      const Schedule schedule = random_schedule(*problem, rng);
      const Evaluation value =
          simulator.evaluate(placement, ReadyOrder(*problem, schedule), *workspace);
      if (value.fits() && value.step < best.step) best = {value.step, placement, schedule};
    }
    if (best.step == kNoUpper) continue;
    ++fitting;
    const LowerBound bound = improve_bound(*problem, best.step + 1, {});
    ASSERT_LE(bound.step, best.step) << bound.reason << "\n"
                                     << describe(*problem, best.placement, best.schedule);
  }
  EXPECT_GT(fitting, 700);
}

TEST(ImproveBound, is_never_below_the_quick_bound_and_only_rises) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    Rng rng = Rng(71).split(i);
    const auto problem = random_problem(rng);
    Nanoseconds last = -1;
    const LowerBound bound = improve_bound(*problem, kNoUpper, {}, [&](const LowerBound& better) {
      ASSERT_GT(better.step, last);
      ASSERT_FALSE(better.reason.empty());
      last = better.step;
    });
    ASSERT_EQ(bound.step, std::max<Nanoseconds>(last, 0));
    ASSERT_GE(bound.step, lower_bound(*problem).step);
  }
}

TEST(ImproveBound, knows_that_memory_forces_work_onto_the_slow_device) {
  // Two of ten ops fit onto the fast device, the others take 20 us each on the slow one.
  TimedGraph graph;
  for (int i = 0; i < 10; ++i) {
    graph.add({.name = fmt::format("op{}", i), .type = "compute", .persistent_bytes = 500}, 10, 0);
  }
  ClusterSpec spec = gpu_cluster(2);
  spec.devices[0].memory = 1000;
  spec.devices[1].slowdown = Decimal{2, 0};
  const auto problem = compile_timed(graph.build(), spec);
  EXPECT_LE(lower_bound(*problem).step, 70'000);
  const LowerBound bound = improve_bound(*problem, kNoUpper, {});
  EXPECT_LE(bound.step, 160'000);
  EXPECT_GE(bound.step, 155'000) << bound.reason;
}

TEST(ImproveBound, knows_that_parameters_on_the_other_device_must_be_sent) {
  // The fast device has room for one of five parameters. Another one is sent there in 100 us, or
  // its op takes 1000 us on the slow device: at best two are sent while the slow device runs one.
  TimedGraph graph;
  for (int i = 0; i < 5; ++i) {
    const TensorId weight = graph.parameter(fmt::format("w{}", i), 100'000);
    graph.op(fmt::format("op{}", i), 10, {weight}, 0);
  }
  ClusterSpec spec = gpu_cluster(2);
  spec.devices[0].memory = 210'000;
  spec.devices[1].slowdown = Decimal{100, 0};
  const auto problem = compile_timed(graph.build(), spec);
  EXPECT_LE(lower_bound(*problem).step, 60'000);
  EXPECT_GE(improve_bound(*problem, kNoUpper, {}).step, 250'000);
}

TEST(ImproveBound, lets_tensors_wait_on_the_device_of_those_that_need_them) {
  // Made quickly on the small device, sent, and kept on the large one until all have been made.
  TimedGraph graph;
  OpSpec middle{.name = "middle", .type = "compute"};
  std::vector<TensorId> made;
  for (int i = 0; i < 6; ++i) {
    OpSpec early{.name = fmt::format("early{}", i), .type = "compute"};
    early.colocate = fmt::format("pair{}", i);
    graph.add(early, 1, 0);
  }
  for (int i = 0; i < 6; ++i) {
    middle.after.push_back(fmt::format("make{}", i));
    made.push_back(graph.op(middle.after.back(), 10, {}, 1000));
  }
  const TensorId signal = graph.add(middle, 10, 0);
  for (int i = 0; i < 6; ++i) {
    OpSpec use{.name = fmt::format("use{}", i), .type = "compute", .inputs = {made[i], signal}};
    use.colocate = fmt::format("pair{}", i);
    graph.add(use, 1, 0);
  }
  ClusterSpec spec = gpu_cluster(2);
  spec.devices[0].memory = 2500;
  spec.devices[1].slowdown = Decimal{50, 0};
  const auto problem = compile_timed(graph.build(), spec);
  Placement placement(problem->num_ops(), 1);
  for (OpId op = 6; op < 13; ++op) placement[op] = 0;
  const Timeline timeline = Simulator(problem).run(placement, {});
  ASSERT_TRUE(timeline.fits());
  EXPECT_LE(improve_bound(*problem, kNoUpper, {}).step, timeline.step);
  // Without room for more than two, the bound knows that something runs on the large device.
  EXPECT_GT(improve_bound(*problem, kNoUpper, {}).step, 100'000);
}

TEST(ImproveBound, proves_that_one_device_is_best_where_links_are_slow) {
  // A chain of forks and joins: a branch saves 10 us and its transfers cost 1000 us.
  TimedGraph graph;
  TensorId last = graph.op("first", 10, {});
  int ops = 1;
  for (int i = 0; i < 50; ++i) {
    const TensorId left = graph.op(fmt::format("left{}", i), 10, {last});
    const TensorId right = graph.op(fmt::format("right{}", i), 10, {last});
    last = graph.op(fmt::format("join{}", i), 10, {left, right});
    ops += 3;
  }
  const auto problem = compile_timed(graph.build(), gpu_cluster(4, kUnlimited, 1'000'000));
  EXPECT_LT(lower_bound(*problem).step, ops * 10'000);
  EXPECT_EQ(improve_bound(*problem, ops * 10'000, {}).step, ops * 10'000);
}

TEST(ImproveBound, counts_siblings_that_must_share_a_device) {
  // Three branches of 10 us between ops of one chain; sending takes 15 us, so that a second device
  // saves nothing for one branch, and 5 us for two.
  TimedGraph graph;
  TensorId last = graph.op("first", 10, {});
  for (int i = 0; i < 20; ++i) {
    const TensorId left = graph.op(fmt::format("left{}", i), 10, {last}, 15'000);
    const TensorId right = graph.op(fmt::format("right{}", i), 10, {last}, 15'000);
    last = graph.op(fmt::format("join{}", i), 10, {left, right}, 15'000);
  }
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  EXPECT_EQ(lower_bound(*problem).step, 410'000);
  EXPECT_EQ(improve_bound(*problem, kNoUpper, {}).step, 610'000);
}

TEST(ImproveBound, obeys_its_budget) {
  const auto problem = tiny_case("training_step_on_three_unequal").problem;
  Budget none;
  none.evaluations = 0;
  EXPECT_EQ(improve_bound(*problem, kNoUpper, none).step, lower_bound(*problem).step);
  std::atomic<bool> cancelled{true};
  Budget stopped;
  stopped.cancelled = &cancelled;
  EXPECT_EQ(improve_bound(*problem, kNoUpper, stopped).step, lower_bound(*problem).step);
}

TEST(ImproveBound, stops_at_the_value_that_is_known) {
  const auto problem = tiny_case("fork_join_on_two_equal").problem;
  const LowerBound free = improve_bound(*problem, kNoUpper, {});
  EXPECT_EQ(improve_bound(*problem, free.step / 2, {}).step, free.step / 2);
}

}  // namespace
}  // namespace emplace
