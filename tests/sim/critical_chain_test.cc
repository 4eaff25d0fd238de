#include "sim/critical_chain.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "sim/simulator.h"

#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

using SegmentKind = ChainSegment::Kind;

struct Chained {
  std::shared_ptr<const Problem> problem;
  Placement placement;
  Timeline timeline;
  CriticalChain chain;
};

Chained chained(std::shared_ptr<const Problem> problem, Placement placement,
                const Schedule& schedule = {}) {
  Chained result{problem, std::move(placement), {}, {}};
  result.timeline = Simulator(problem).run(result.placement, schedule);
  result.chain = critical_chain(*problem, result.placement, result.timeline);
  return result;
}

std::vector<SegmentKind> kinds(const CriticalChain& chain) {
  std::vector<SegmentKind> result;
  for (const ChainSegment& segment : chain.segments) result.push_back(segment.kind);
  return result;
}

TEST(CriticalChain, follows_a_transfer_between_devices) {
  TimedGraph graph;
  graph.op("b", 5, {graph.op("a", 10, {}, 3000)});
  const Chained c = chained(compile_timed(graph.build(), gpu_cluster(2)), {0, 1});
  EXPECT_EQ(kinds(c.chain),
            (std::vector{SegmentKind::kCompute, SegmentKind::kTransfer, SegmentKind::kCompute}));
  EXPECT_EQ(c.chain.compute, 15'000);
  EXPECT_EQ(c.chain.transfer, 3'000);
  EXPECT_EQ(c.chain.segments[1].op, 1);
  EXPECT_EQ(c.timeline.transfers[c.chain.segments[1].transfer].tensor, 0);
}

TEST(CriticalChain, names_who_kept_the_device_busy) {
  TimedGraph graph;
  graph.op("short", 2, {});
  graph.op("long", 7, {});
  graph.op("last", 4, {});
  const Chained c = chained(compile_timed(graph.build(), gpu_cluster(1)), {0, 0, 0});
  ASSERT_EQ(kinds(c.chain), (std::vector{SegmentKind::kDeviceWait, SegmentKind::kCompute}));
  EXPECT_EQ(c.chain.segments[0].op, 2);
  EXPECT_EQ(c.chain.segments[0].ahead, 2);
  EXPECT_EQ(c.chain.segments[0].longest_ahead, 1);
  EXPECT_EQ(c.chain.device_wait, 9'000);
  EXPECT_EQ(c.chain.compute, 4'000);
}

TEST(CriticalChain, names_the_transfer_that_was_queued_before) {
  TimedGraph graph;
  const TensorId first = graph.op("a", 1, {}, 8000);
  const TensorId second = graph.op("b", 1, {}, 2000);
  graph.op("c", 1, {first});
  graph.op("d", 30, {second});
  const Chained c = chained(compile_timed(graph.build(), gpu_cluster(2)), {0, 0, 1, 1});
  // b, ready at once, waits for a; its tensor for a's; c runs before d.
  EXPECT_EQ(kinds(c.chain),
            (std::vector{SegmentKind::kDeviceWait, SegmentKind::kCompute, SegmentKind::kChannelWait,
                         SegmentKind::kTransfer, SegmentKind::kCompute}));
  const ChainSegment& wait = c.chain.segments[2];
  EXPECT_EQ(wait.start, 2'000);
  EXPECT_EQ(wait.finish, 9'000);
  EXPECT_EQ(c.timeline.transfers[wait.longest_ahead].tensor, first);
  EXPECT_EQ(c.chain.channel_wait, 7'000);
}

TEST(CriticalChain, counts_gaps_and_holds_apart) {
  ClusterSpec spec = gpu_cluster(2);
  for (Device& device : spec.devices) device.gap = 500;
  spec.links[0].hold = 3000;
  TimedGraph graph;
  const TensorId first = graph.op("a", 1, {}, 1000);
  const TensorId second = graph.op("b", 1, {}, 1000);
  graph.op("c", 1, {first, second});
  const Chained c = chained(compile_timed(graph.build(), spec), {0, 0, 1});
  // a until 1000, gap until 1500, b until 2500; a's tensor until 2000, held until 5000.
  EXPECT_EQ(c.chain.idle, 500 + 2500);
  EXPECT_EQ(c.chain.device_wait, 1000);
  EXPECT_EQ(c.chain.channel_wait, 0);
  EXPECT_EQ(c.timeline.step, 7000);
}

TEST(CriticalChain, goes_through_control_dependencies_and_views) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 3, {});
  graph.view("v", a);
  graph.add({.name = "b", .type = "compute", .after = {"a"}}, 4);
  const Chained c = chained(compile_timed(graph.build(), gpu_cluster(2)), {0, 0, 1});
  EXPECT_EQ(kinds(c.chain), (std::vector{SegmentKind::kCompute, SegmentKind::kCompute}));
  EXPECT_EQ(c.chain.compute, 7'000);
}

TEST(CriticalChain, is_empty_where_nothing_takes_time) {
  TimedGraph graph;
  graph.view("v", graph.parameter("w"));
  const Chained c = chained(compile_timed(graph.build(), gpu_cluster(1)), {0, 0});
  EXPECT_TRUE(c.chain.segments.empty());
}

// Times at which `covered` is not, within the segment.
Nanoseconds uncovered(const ChainSegment& segment,
                      std::vector<std::pair<Nanoseconds, Nanoseconds>> covered) {
  std::sort(covered.begin(), covered.end());
  Nanoseconds at = segment.start;
  Nanoseconds open = 0;
  for (const auto& [start, finish] : covered) {
    if (start >= segment.finish) break;
    open += std::max<Nanoseconds>(0, start - at);
    at = std::max(at, finish);
  }
  return open + std::max<Nanoseconds>(0, segment.finish - at);
}

void expect_wait_explained(const Chained& c, const ChainSegment& segment) {
  const Cluster& cluster = c.problem->cluster();
  std::vector<std::pair<Nanoseconds, Nanoseconds>> busy;
  std::vector<std::pair<Nanoseconds, Nanoseconds>> unavailable;
  if (segment.kind == SegmentKind::kDeviceWait) {
    const DeviceId device = c.placement[segment.op];
    for (OpId op = 0; op < c.problem->num_ops(); ++op) {
      const OpSpan& span = c.timeline.ops[op];
      if (c.placement[op] != device || span.start == span.finish) continue;
      busy.emplace_back(span.start, span.finish);
      unavailable.emplace_back(span.start, span.finish + cluster.device(device).gap);
    }
  } else {
    const Transfer& waiting = c.timeline.transfers[segment.transfer];
    EXPECT_EQ(segment.start, waiting.queued);
    for (const Transfer& transfer : c.timeline.transfers) {
      if (transfer.channel != waiting.channel || transfer.start == transfer.finish) continue;
      busy.emplace_back(transfer.start, transfer.finish);
      const Nanoseconds hold = cluster.link(transfer.from, transfer.to)->hold;
      unavailable.emplace_back(transfer.start, transfer.finish + hold);
    }
  }
  EXPECT_EQ(uncovered(segment, unavailable), 0) << "waits for nothing";
  EXPECT_EQ(uncovered(segment, busy), segment.idle);
  EXPECT_EQ(segment.ahead == 0, segment.longest_ahead == ChainSegment::kNone);
}

// Whether the segment ends because of what the next one needs.
void expect_segment_holds(const Chained& c, const ChainSegment& segment) {
  const OpSpan& span = c.timeline.ops[segment.op];
  switch (segment.kind) {
    case SegmentKind::kCompute:
      EXPECT_EQ(segment.start, span.start);
      EXPECT_EQ(segment.finish, span.finish);
      break;
    case SegmentKind::kTransfer: {
      const Transfer& transfer = c.timeline.transfers[segment.transfer];
      EXPECT_EQ(segment.start, transfer.start);
      EXPECT_EQ(segment.finish, transfer.finish);
      EXPECT_EQ(transfer.to, c.placement[segment.op]);
      const auto inputs = c.problem->graph().inputs(segment.op);
      EXPECT_NE(std::find(inputs.begin(), inputs.end(), transfer.tensor), inputs.end());
      EXPECT_GE(span.start, segment.finish);
      break;
    }
    case SegmentKind::kDeviceWait:
      EXPECT_EQ(segment.finish, span.start);
      expect_wait_explained(c, segment);
      break;
    case SegmentKind::kChannelWait:
      expect_wait_explained(c, segment);
      break;
  }
}

TEST(CriticalChain, explains_every_moment_of_random_steps) {
  std::set<SegmentKind> seen;
  bool idle_seen = false;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng);
    const Placement placement = random_placement(*problem, rng);
    const Schedule schedule = random_schedule(*problem, rng);
    const Chained c = chained(problem, placement, schedule);
    SCOPED_TRACE(seed);
    Nanoseconds at = 0;
    for (const ChainSegment& segment : c.chain.segments) {
      EXPECT_EQ(segment.start, at);
      EXPECT_GT(segment.length(), 0);
      at = segment.finish;
      expect_segment_holds(c, segment);
      seen.insert(segment.kind);
      idle_seen = idle_seen || segment.idle > 0;
    }
    EXPECT_EQ(at, c.timeline.step);
    EXPECT_EQ(c.chain.compute + c.chain.transfer + c.chain.device_wait + c.chain.channel_wait +
                  c.chain.idle,
              c.timeline.step);
    if (HasFailure()) FAIL() << describe(*problem, placement, schedule);
  }
  EXPECT_EQ(seen.size(), 4);
  EXPECT_TRUE(idle_seen);
}

}  // namespace
}  // namespace emplace
