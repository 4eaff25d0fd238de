// docs/simulator.md, "Throughput", the simulated stream: against the reference on random problems,
// against single steps, and by hand.
#include "sim/stream_run.h"

#include <gtest/gtest.h>

#include "sim/throughput.h"

#include "support/random_problem.h"
#include "support/reference_simulator.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

StreamRun run(const Problem& problem, const Placement& placement, int in_flight) {
  const ReadyOrder fifo;
  return StreamSimulator(problem, placement, fifo).run(in_flight);
}

TEST(StreamRun, equals_the_reference_on_random_problems) {
  int faster = 0;
  int larger = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    Rng rng = Rng(31).split(i);
    const auto problem = random_problem(rng, {.max_ops = 1 + i / 20, .max_devices = 4});
    const Placement placement = random_placement(*problem, rng);
    const Schedule schedule = random_schedule(*problem, rng);
    const ReadyOrder order(*problem, schedule);
    const StreamSimulator stream(*problem, placement, order);
    const StreamRun alone = stream.run(1);
    for (const int in_flight : {1, 2, 3, 5}) {
      const reference::Flow expected =
          reference::flow(problem->graph(), problem->cluster(), placement, schedule, in_flight,
                          problem->compile_options().in_place);
      const StreamRun found = stream.run(in_flight);
      const std::string text = fmt::format("case {} in flight {}\n{}", i, in_flight,
                                           describe(*problem, placement, schedule));
      ASSERT_EQ(found.period, expected.period) << text;
      ASSERT_EQ(found.latency, expected.latency) << text;
      ASSERT_EQ(found.peaks, expected.peaks) << text;
      faster += found.period < alone.period ? 1 : 0;
      larger += found.peaks != alone.peaks ? 1 : 0;
    }
  }
  EXPECT_GT(faster, 150);  // or steps in flight would make no difference
  EXPECT_GT(larger, 150);
}

// Nothing of the step before is left when the next enters but gaps and holds.
TEST(StreamRun, with_one_in_flight_is_the_step_of_the_simulator) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    Rng rng = Rng(32).split(i);
    const auto problem = random_problem(rng, {.max_ops = 1 + i / 15});
    const Placement placement = random_placement(*problem, rng);
    const Schedule schedule = random_schedule(*problem, rng);
    const ReadyOrder order(*problem, schedule);
    const Timeline step = Simulator(problem).run(placement, schedule);
    const StreamRun found = StreamSimulator(*problem, placement, order).run(1, 1);
    const std::string text = describe(*problem, placement, schedule);
    Nanoseconds longest_wait = 0;
    for (DeviceId from = 0; from < problem->num_devices(); ++from) {
      longest_wait = std::max(longest_wait, problem->cluster().device(from).gap);
      for (DeviceId to = 0; to < problem->num_devices(); ++to) {
        const Link* link = problem->cluster().link(from, to);
        if (link != nullptr) longest_wait = std::max(longest_wait, link->hold);
      }
    }
    if (longest_wait == 0) {
      ASSERT_EQ(found.period, step.step) << text;
      ASSERT_EQ(found.latency, step.step) << text;
    }
    ASSERT_EQ(found.steps.size(), 1U);
    for (OpId op = 0; op < problem->num_ops(); ++op) {
      ASSERT_EQ(found.steps[0].ops[op].start, step.ops[op].start) << text;
      ASSERT_EQ(found.steps[0].ops[op].finish, step.ops[op].finish) << text;
    }
    ASSERT_EQ(found.steps[0].transfers.size(), step.transfers.size()) << text;
    for (DeviceId device = 0; device < problem->num_devices() && longest_wait == 0; ++device) {
      ASSERT_EQ(found.peaks[device], step.devices[device].peak) << text;
    }
  }
}

// Four ops of 100 us in a row, two on each device; a tensor takes 11 us.
TEST(StreamRun, of_a_pipeline_needs_a_step_for_every_part_and_one_on_its_way) {
  const Problem& problem = *tiny_case("chain_on_two_equal").problem;
  const Placement placement{0, 0, 0, 1, 1};
  EXPECT_EQ(run(problem, placement, 1).period, 411'000);
  EXPECT_EQ(run(problem, placement, 2).period, 205'500);
  EXPECT_EQ(run(problem, placement, 3).period, 200'000);
  const ReadyOrder fifo;
  const StreamRun chosen = choose_in_flight(StreamSimulator(problem, placement, fifo));
  EXPECT_EQ(chosen.in_flight, 3);
  EXPECT_EQ(chosen.period, 200'000);
  EXPECT_GE(chosen.latency, 411'000);
}

// While at most three are in flight, the fourth enters when the first finishes.
TEST(StreamRun, records_when_steps_enter) {
  const Problem& problem = *tiny_case("chain_on_two_equal").problem;
  const ReadyOrder fifo;
  const StreamRun stream = StreamSimulator(problem, {0, 0, 0, 1, 1}, fifo).run(3, 5);
  ASSERT_EQ(stream.steps.size(), 5U);
  ASSERT_EQ(stream.entered.size(), 6U);
  const auto finish = [&](std::size_t step) {
    Nanoseconds last = 0;
    for (const OpSpan& span : stream.steps[step].ops) last = std::max(last, span.finish);
    return last;
  };
  EXPECT_EQ(stream.entered, (std::vector<Nanoseconds>{0, 0, 0, finish(0), finish(1), finish(2)}));
  EXPECT_EQ(finish(0), 411'000);
  EXPECT_EQ(finish(2) - finish(1), 200'000);
  EXPECT_TRUE(StreamSimulator(problem, {0, 0, 0, 1, 1}, fifo).run(3).entered.empty());
}

// On one device nothing is gained, whatever it has room for.
TEST(StreamRun, on_one_device_is_one_step_after_the_other) {
  const Problem& problem = *tiny_case("view_chain_on_one_device").problem;
  const Placement placement(problem.num_ops(), 0);
  const ReadyOrder fifo;
  const StreamRun chosen = choose_in_flight(StreamSimulator(problem, placement, fifo));
  EXPECT_EQ(chosen.in_flight, 1);
  EXPECT_LT(chosen.peaks[0], throughput(problem, placement, Overlap::kFull).memory[0]);
}

TEST(StreamRun, chosen_is_the_least_in_flight_that_fits_and_is_about_as_short_as_the_best) {
  int several = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    Rng rng = Rng(33).split(i);
    const auto problem = random_problem(rng, {.max_ops = 20, .roomy = i % 4 != 0});
    const Placement placement = random_placement(*problem, rng);
    const ReadyOrder fifo;
    const StreamSimulator stream(*problem, placement, fifo);
    const StreamRun chosen = choose_in_flight(stream);
    const StreamRun alone = stream.run(1);
    EXPECT_LE(chosen.period, alone.period);
    EXPECT_GE(chosen.period, stream.largest_load());
    EXPECT_EQ(chosen.fits(), alone.fits());
    for (int fewer = 1; fewer < chosen.in_flight; ++fewer) {
      EXPECT_GT(stream.run(fewer).period, chosen.period) << fewer;
    }
    several += chosen.in_flight > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 50);
}

}  // namespace
}  // namespace emplace
