// The loads that the stream search keeps up to date, against sim/throughput.h.
#include "stream/state.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"

#include "sim/throughput.h"

#include "stream/anneal.h"
#include "stream/coarsen.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

std::vector<DeviceId> by_group(const Problem& problem, const Placement& placement) {
  std::vector<DeviceId> result(problem.num_groups());
  for (OpId op = 0; op < problem.num_ops(); ++op) result[problem.group_of(op)] = placement[op];
  return result;
}

bool is_valid(const Problem& problem, const Placement& placement) {
  try {
    check_placement(problem, placement);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Returns whether there was anything to compare: loads mean nothing where a link is missing.
bool expect_equal(const StreamState& state, const Problem& problem, Overlap overlap) {
  const Placement placement = expand_groups(problem, state.assignment());
  EXPECT_EQ(state.missing_links() == 0, is_valid(problem, placement));
  if (state.missing_links() > 0) return false;
  const ThroughputResult expected = throughput(problem, placement, overlap);
  EXPECT_EQ(state.period(), expected.period);
  Bytes overflow = 0;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    EXPECT_EQ(state.load(device), expected.device_loads[device]);
    const Bytes capacity = problem.cluster().device(device).memory;
    overflow += std::max<Bytes>(0, expected.memory[device] - capacity);
    if (!state.memory_is_ample()) {
      EXPECT_EQ(state.need(device), expected.memory[device]);
    }
  }
  EXPECT_EQ(state.overflow(), overflow);
  if (overlap == Overlap::kFull) {
    for (ChannelId channel = 0; channel < problem.cluster().num_channels(); ++channel) {
      EXPECT_EQ(state.load(problem.num_devices() + channel), expected.channel_loads[channel]);
    }
  }
  return true;
}

bool may_be_on(const StreamLevel& level, std::uint32_t item, DeviceId device) {
  const auto allowed = level.allowed(item);
  return std::binary_search(allowed.begin(), allowed.end(), device);
}

void expect_probed(const StreamState& state, std::span<const Nanoseconds> before,
                   std::span<const StreamState::Change> changes) {
  std::vector<Nanoseconds> expected(before.begin(), before.end());
  for (const StreamState::Change& change : changes) expected[change.resource] = change.load;
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), state.loads().begin()));
}

// Makes random moves and swaps; each must end where its probe said, and equal a fresh sum.
int walk(const Problem& problem, Overlap overlap, Rng& rng) {
  const StreamModel model(problem, overlap);
  const StreamLevel level(model);
  StreamState state(level, by_group(problem, random_placement(problem, rng)));
  int compared = expect_equal(state, problem, overlap) ? 1 : 0;
  for (int step = 0; step < 30; ++step) {
    const auto item = static_cast<std::uint32_t>(rng.below(level.num_items()));
    const auto other = static_cast<std::uint32_t>(rng.below(level.num_items()));
    const DeviceId from = state.device_of(item);
    const std::vector<Nanoseconds> before(state.loads().begin(), state.loads().end());
    if (rng.chance(0.5)) {
      const DeviceId to = rng.pick(level.allowed(item));
      if (to == from) continue;
      const Bytes joined = state.overflow_with(item, to);
      const Bytes left = state.overflow_without(item);
      const auto changes = state.probe(item, to);
      const std::vector<StreamState::Change> probed(changes.begin(), changes.end());
      state.move(item, to);
      expect_probed(state, before, probed);
      EXPECT_EQ(state.overflow(to), joined);
      EXPECT_EQ(state.overflow(from), left);
    } else {
      const DeviceId to = state.device_of(other);
      if (to == from || !may_be_on(level, item, to) || !may_be_on(level, other, from)) continue;
      const Bytes here = state.overflow_swapped(item, other);
      const Bytes there = state.overflow_swapped(other, item);
      const auto changes = state.probe_swap(item, other);
      const std::vector<StreamState::Change> probed(changes.begin(), changes.end());
      state.swap(item, other);
      expect_probed(state, before, probed);
      EXPECT_EQ(state.overflow(from), here);
      EXPECT_EQ(state.overflow(to), there);
    }
    compared += expect_equal(state, problem, overlap) ? 1 : 0;
  }
  return compared;
}

TEST(StreamState, equals_the_throughput_rules_under_moves_and_swaps) {
  int compared = 0;
  int general = 0;
  for (std::uint64_t i = 0; i < 1500; ++i) {
    Rng rng = Rng(7).split(i);
    const auto problem = random_problem(rng, {.max_ops = 1 + i / 40});
    for (const Overlap overlap : {Overlap::kFull, Overlap::kNone}) {
      compared += walk(*problem, overlap, rng);
      ASSERT_FALSE(HasFailure()) << describe(*problem, {}, {});
      const StreamModel model(*problem, overlap);
      general += StreamDevices(model).symmetric ? 0 : 1;
    }
  }
  EXPECT_GT(compared, 20'000);  // or moves into missing links would leave little to compare
  EXPECT_GT(general, 500);
  EXPECT_LT(general, 2900);  // both ways of summing were tried
}

TEST(StreamState, a_merged_level_has_the_loads_of_what_it_merges) {
  int levels = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    Rng rng = Rng(8).split(i);
    const auto problem = random_problem(rng, {.max_ops = 40});
    const StreamModel model(*problem, i % 2 == 0 ? Overlap::kFull : Overlap::kNone);
    const StreamLevel level(model);
    const auto start = by_group(*problem, random_placement(*problem, rng));
    const StreamHierarchy hierarchy(level, 2, {start.begin(), start.end()}, rng,
                                    [](std::int64_t) { return false; });
    std::vector<DeviceId> device_of = hierarchy.coarsen(start);
    // Merged items stay together, wherever they go.
    const StreamLevel& coarsest = hierarchy.level(hierarchy.num_levels() - 1);
    for (std::uint32_t item = 0; item < coarsest.num_items(); ++item) {
      if (rng.chance(0.5)) device_of[item] = rng.pick(coarsest.allowed(item));
    }
    const StreamValue value = stream_value(coarsest, device_of);
    for (std::size_t depth = hierarchy.num_levels() - 1; depth > 0; --depth) {
      device_of = hierarchy.refine(depth, device_of);
      ++levels;
    }
    const StreamValue finest = stream_value(level, device_of);
    ASSERT_EQ(value.period, finest.period) << describe(*problem, {}, {});
    ASSERT_EQ(value.overflow, finest.overflow);
    // Nets of one merged item and the same others are one net: they miss one link together.
    ASSERT_EQ(value.missing_links > 0, finest.missing_links > 0);
  }
  EXPECT_GT(levels, 300);
}

TEST(StreamState, finds_the_largest_temp_among_thousands) {
  constexpr std::uint32_t kItems = 5000;  // three levels of words
  constexpr DeviceId kDevices = 3;
  Rng rng(5);
  TimedGraph graph;
  for (std::uint32_t i = 0; i < kItems; ++i) {
    OpSpec op{.name = "op" + std::to_string(i), .type = "compute"};
    op.temp_bytes = static_cast<Bytes>(rng.below(2000));
    graph.add(op, 1, 0);
  }
  const auto problem = compile_timed(graph.build(), gpu_cluster(kDevices));
  const StreamModel model(*problem, Overlap::kNone);
  const StreamLevel level(model);
  LargestTemps temps(level, kDevices);
  std::vector<DeviceId> device_of(kItems, 0);
  for (std::uint32_t item = 0; item < kItems; ++item) temps.add(item, 0);
  const auto largest = [&](DeviceId device, std::uint32_t without) {
    Bytes result = 0;
    for (std::uint32_t item = 0; item < kItems; ++item) {
      if (device_of[item] == device && item != without) result = std::max(result, level.temp(item));
    }
    return result;
  };
  EXPECT_EQ(temps.largest(1), 0);
  for (int step = 0; step < 2000; ++step) {
    // The largest ones move most often, so that the answer changes.
    auto item = static_cast<std::uint32_t>(rng.below(kItems));
    for (std::uint32_t i = 0; rng.chance(0.7) && i < kItems; ++i) {
      if (device_of[i] == device_of[item] && level.temp(i) > level.temp(item)) item = i;
    }
    const DeviceId to = static_cast<DeviceId>(rng.below(kDevices));
    ASSERT_EQ(temps.largest_without(item, device_of[item]), largest(device_of[item], item));
    temps.remove(item, device_of[item]);
    temps.add(item, to);
    device_of[item] = to;
    ASSERT_EQ(temps.largest(to), largest(to, kItems));
  }
}

}  // namespace
}  // namespace emplace
