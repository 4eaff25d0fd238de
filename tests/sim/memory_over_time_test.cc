#include "sim/memory_over_time.h"

#include <gtest/gtest.h>

#include "sim/simulator.h"
#include "sim/stream_run.h"

#include "support/random_problem.h"

namespace emplace {
namespace {

TEST(MemoryOverTime, peaks_are_the_simulators_on_random_problems) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng);
    const Placement placement = random_placement(*problem, rng);
    const Schedule schedule = random_schedule(*problem, rng);
    const Timeline timeline = Simulator(problem).run(placement, schedule);
    const auto memory = memory_over_time(*problem, placement, timeline, 1000);
    ASSERT_EQ(memory.size(), timeline.devices.size());
    for (DeviceId id = 0; id < problem->num_devices(); ++id) {
      const DeviceMemory& device = memory[id];
      ASSERT_EQ(sum_of(device.peak.held), timeline.devices[id].peak)
          << "seed " << seed << " device " << id << "\n"
          << describe(*problem, placement, schedule);
      Bytes held = 0;
      for (const MemoryHolder& holder : device.largest) held += holder.bytes;
      EXPECT_EQ(held, timeline.devices[id].peak) << "what is there at the peak, seed " << seed;
      const auto few = thinned(device.moments, timeline.step, 3);
      EXPECT_LE(few.size(), 4U);
      Bytes highest = 0;
      for (const MemoryMoment& moment : few) highest = std::max(highest, sum_of(moment.held));
      EXPECT_EQ(highest, timeline.devices[id].peak);
    }
  }
}

// All steps are recorded, so that the peak is among what they hold. Steps that the simulation does
// not see the end of are missing from the end of the record, never from the part before `entered`.
TEST(MemoryOverTime, of_a_stream_has_its_peaks_on_random_problems) {
  int higher = 0;
  int same = 0;
  int all = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    Rng rng = Rng(41).split(i);
    const auto problem = random_problem(rng, {.max_ops = 1 + i / 15, .max_devices = 4});
    const Placement placement = random_placement(*problem, rng);
    const Schedule schedule = random_schedule(*problem, rng);
    const ReadyOrder order(*problem, schedule);
    const Timeline alone = Simulator(problem).run(placement, schedule);
    for (const int in_flight : {1, 2, 3, 5}) {
      const StreamSimulator simulator(*problem, placement, order);
      const StreamRun stream = simulator.run(in_flight, 1000);
      if (stream.entered.back() == 0) continue;  // all steps are instant
      const auto memory =
          memory_over_stream(*problem, placement, stream.steps, stream.entered.back() - 1, 1000);
      for (DeviceId id = 0; id < problem->num_devices(); ++id) {
        const Bytes peak = sum_of(memory[id].peak.held);
        const std::string text = fmt::format("case {} in flight {} device {}\n{}", i, in_flight, id,
                                             describe(*problem, placement, schedule));
        ASSERT_LE(peak, stream.peaks[id]) << text;
        Bytes held = 0;
        for (const MemoryHolder& holder : memory[id].largest) held += holder.bytes;
        EXPECT_EQ(held, peak) << "what is there at the peak, " << text;
        ++all;
        same += peak == stream.peaks[id] ? 1 : 0;
        higher += peak > alone.devices[id].peak ? 1 : 0;
      }
    }
  }
  EXPECT_GT(same, all * 99 / 100);  // a peak may come with the very last steps
  EXPECT_GT(higher, 100);           // or steps in flight would hold nothing
}

}  // namespace
}  // namespace emplace
