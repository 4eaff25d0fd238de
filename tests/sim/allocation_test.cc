// An evaluation allocates nothing once its workspace exists. Counted by operator new, which the
// address sanitizer needs for itself: there is no such test in that build.
#ifndef __SANITIZE_ADDRESS__

#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "base/rng.h"

#include "sim/simulator.h"

#include "support/tiny_graphs.h"

namespace {

std::atomic<long> allocations{0};

}  // namespace

// Not inlined, or the compiler takes malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace emplace {
namespace {

Placement random_placement(const Problem& problem, Rng& rng) {
  std::vector<DeviceId> devices(problem.num_groups());
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    devices[group] = rng.pick(problem.allowed_devices(group));
  }
  return expand_groups(problem, devices);
}

TEST(Simulator, evaluations_allocate_nothing) {
  Rng rng(3);
  for (const auto& tiny : tiny_cases()) {
    const Problem& problem = *tiny.problem;
    const Simulator simulator(tiny.problem);
    const auto workspace = simulator.make_workspace();
    std::vector<Placement> placements;
    for (int i = 0; i < 20; ++i) placements.push_back(random_placement(problem, rng));
    const ReadyOrder fifo;
    const ReadyOrder given(problem, Schedule{std::vector<std::int64_t>(problem.num_ops(), 0)});
    std::vector<Bytes> peaks(problem.num_devices());
    simulator.evaluate(placements[0], given, *workspace);  // the first use
    const long before = allocations;
    for (const Placement& placement : placements) {
      simulator.evaluate(placement, fifo, *workspace, peaks);
      simulator.evaluate(placement, given, *workspace);
      simulator.step_time(placement, fifo, *workspace);
    }
    EXPECT_EQ(allocations, before) << tiny.name;
  }
}

}  // namespace
}  // namespace emplace

#endif  // __SANITIZE_ADDRESS__
