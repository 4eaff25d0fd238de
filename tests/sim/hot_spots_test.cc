#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "sim/chain_walk.h"
#include "sim/simulator.h"

#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

using SpotKind = HotSpot::Kind;

std::vector<HotSpot> spots_of(const std::shared_ptr<const Problem>& problem,
                              const Placement& placement) {
  const Simulator simulator(problem);
  return simulator.hot_spots(placement, {}, *simulator.make_workspace());
}

// The same by walking a Timeline, which sorts it.
std::vector<HotSpot> spots_along(const Problem& problem, const Placement& placement,
                                 const Timeline& timeline) {
  const ChainWalk walk(problem, placement, timeline);
  std::vector<HotSpot> spots;
  walk.backwards([&](OpId op, const ChainWalk::Cause& cause) {
    const OpSpan& span = timeline.ops[op];
    if (span.finish > span.start)
      spots.push_back({SpotKind::kWork, op, op, span.finish - span.start});
    if (cause.time < span.start) {
      const OpId blocker = walk.ran_before(op);
      if (blocker != kNoOp && timeline.ops[blocker].finish > cause.time) {
        spots.push_back({SpotKind::kBusy, op, blocker, span.start - cause.time});
        return blocker;
      }
    }
    if (cause.transfer != ChainWalk::kNoTransfer) {
      const Nanoseconds made = timeline.ops[cause.op].finish;
      if (cause.time > made) {
        spots.push_back({SpotKind::kTransfer, op, cause.op, cause.time - made});
      }
    }
    return cause.op;
  });
  return spots;
}

void expect_spot(const HotSpot& spot, SpotKind kind, OpId op, OpId other, Nanoseconds length) {
  EXPECT_EQ(spot.kind, kind);
  EXPECT_EQ(spot.op, op);
  EXPECT_EQ(spot.other, other);
  EXPECT_EQ(spot.length, length);
}

TEST(HotSpots, count_the_whole_way_of_a_tensor) {
  TimedGraph graph;
  const TensorId first = graph.op("a", 1, {}, 8000);
  const TensorId second = graph.op("b", 1, {}, 2000);
  graph.op("c", 1, {first});
  graph.op("d", 30, {second});
  const auto spots = spots_of(compile_timed(graph.build(), gpu_cluster(2)), {0, 0, 1, 1});
  // b's tensor, ready at 2, waits for a's until 9 and arrives at 11; b waits for a.
  ASSERT_EQ(spots.size(), 5);
  expect_spot(spots[0], SpotKind::kWork, 3, 3, 30'000);
  expect_spot(spots[1], SpotKind::kTransfer, 3, 1, 9'000);
  expect_spot(spots[2], SpotKind::kWork, 1, 1, 1'000);
  expect_spot(spots[3], SpotKind::kBusy, 1, 0, 1'000);
  expect_spot(spots[4], SpotKind::kWork, 0, 0, 1'000);
}

TEST(HotSpots, go_on_with_the_op_that_kept_the_device_busy) {
  TimedGraph graph;
  graph.op("short", 2, {});
  graph.op("long", 7, {});
  graph.op("last", 4, {});
  const auto spots = spots_of(compile_timed(graph.build(), gpu_cluster(1)), {0, 0, 0});
  ASSERT_EQ(spots.size(), 5);
  expect_spot(spots[0], SpotKind::kWork, 2, 2, 4'000);
  expect_spot(spots[1], SpotKind::kBusy, 2, 1, 9'000);
  expect_spot(spots[2], SpotKind::kWork, 1, 1, 7'000);
  expect_spot(spots[3], SpotKind::kBusy, 1, 0, 2'000);
  expect_spot(spots[4], SpotKind::kWork, 0, 0, 2'000);
}

TEST(HotSpots, are_none_where_nothing_takes_time) {
  TimedGraph graph;
  graph.view("v", graph.parameter("w"));
  EXPECT_TRUE(spots_of(compile_timed(graph.build(), gpu_cluster(1)), {0, 0}).empty());
}

// Whether `spot` is what it says, for an op that begins no later than `before`.
void expect_spot_holds(const Problem& problem, const Placement& placement, const Timeline& timeline,
                       const HotSpot& spot, Nanoseconds before) {
  const OpSpan& span = timeline.ops[spot.op];
  const OpSpan& other = timeline.ops[spot.other];
  EXPECT_GT(spot.length, 0);
  EXPECT_LE(span.start, before);
  switch (spot.kind) {
    case SpotKind::kWork:
      EXPECT_EQ(spot.length, span.finish - span.start);
      break;
    case SpotKind::kBusy:
      EXPECT_EQ(placement[spot.other], placement[spot.op]);
      EXPECT_LT(other.start, span.start);
      EXPECT_GT(other.finish, span.start - spot.length) << "was over before the op was ready";
      EXPECT_LE(other.finish, span.start);
      break;
    case SpotKind::kTransfer: {
      EXPECT_NE(placement[spot.other], placement[spot.op]);
      EXPECT_LE(other.finish + spot.length, span.start);
      const auto inputs = problem.graph().inputs(spot.op);
      EXPECT_TRUE(std::any_of(inputs.begin(), inputs.end(), [&](TensorId tensor) {
        return problem.graph().producer(tensor) == spot.other;
      }));
      break;
    }
  }
}

TEST(HotSpots, cover_random_steps_but_for_idle_time) {
  std::set<SpotKind> seen;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const auto problem = random_problem(rng);
    const Placement placement = random_placement(*problem, rng);
    const Schedule schedule = random_schedule(*problem, rng);
    const Simulator simulator(problem);
    const Timeline timeline = simulator.run(placement, schedule);
    const auto workspace = simulator.make_workspace();
    std::vector<Bytes> peaks(problem->num_devices());
    const ReadyOrder order(*problem, schedule);
    const std::vector<HotSpot> spots = simulator.hot_spots(placement, order, *workspace, peaks);
    EXPECT_EQ(spots, spots_along(*problem, placement, timeline));
    for (DeviceId device = 0; device < problem->num_devices(); ++device) {
      EXPECT_EQ(peaks[device], timeline.devices[device].peak);
    }
    EXPECT_EQ(spots.empty(), timeline.step == 0);
    Nanoseconds before = timeline.step;
    Nanoseconds covered = 0;
    for (const HotSpot& spot : spots) {
      expect_spot_holds(*problem, placement, timeline, spot, before);
      before = timeline.ops[spot.op].start;
      covered += spot.length;
      seen.insert(spot.kind);
    }
    Nanoseconds largest_gap = 0;
    for (DeviceId device = 0; device < problem->num_devices(); ++device) {
      largest_gap = std::max(largest_gap, problem->cluster().device(device).gap);
    }
    EXPECT_GE(covered + largest_gap * problem->num_ops(), timeline.step);
    if (HasFailure()) FAIL() << describe(*problem, placement, schedule);
  }
  EXPECT_EQ(seen.size(), 3);
}

}  // namespace
}  // namespace emplace
