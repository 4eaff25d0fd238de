#include "sim/memory_over_time.h"

#include <gtest/gtest.h>

#include "sim/simulator.h"

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

}  // namespace
}  // namespace emplace
