// Bounds of streams against every placement of small problems, and their parts against plain
// enumeration: no false proof, and tight often enough to be worth having.
#include "stream/bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "sim/throughput.h"

#include "stream/bound_master.h"
#include "stream/bound_order.h"
#include "stream/bound_pricing.h"
#include "stream/bound_rows.h"
#include "stream/search.h"
#include "support/random_problem.h"
#include "support/streams.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

constexpr Nanoseconds kNothingKnown = std::numeric_limits<Nanoseconds>::max();

// The least period of all placements that fit; nothing where none does.
std::optional<Nanoseconds> best_of_all(const Problem& problem, Overlap overlap) {
  const std::optional<Evaluation> best = best_of_all_streams(problem, overlap);
  if (!best || !best->fits()) return std::nullopt;
  return best->step;
}

Budget rounds(std::int64_t count) {
  Budget budget;
  budget.evaluations = count;
  return budget;
}

// All that the bounder can do with one `upper` within a budget.
StreamBound bound_stream(const StreamModel& model, Nanoseconds upper, const Budget& budget,
                         const std::function<void(const StreamBound&)>& on_improvement = {}) {
  StreamBounder bounder(model);
  Nanoseconds reported = -1;
  const auto report = [&] {
    if (on_improvement && bounder.bound().period > reported) on_improvement(bounder.bound());
    reported = bounder.bound().period;
  };
  report();
  while (bounder.open(upper) && !budget.spent(bounder.rounds())) {
    bounder.step(upper, budget);
    report();
  }
  return bounder.bound();
}

struct BoundTally {
  int compared = 0;
  int tight = 0;
  int beyond_simple = 0;  // better than the first bound, which needs no covering
};

// `upper` above the optimum, so that a false proof shows.
void compare_bound(const Problem& problem, Overlap overlap, Nanoseconds upper, BoundTally& tally) {
  const std::optional<Nanoseconds> best = best_of_all(problem, overlap);
  if (!best) return;
  const StreamModel model(problem, overlap);
  if (upper <= *best) upper = *best + 1 + upper;
  StreamBound last;
  Nanoseconds first = -1;
  const StreamBound bound = bound_stream(model, upper, Budget{}, [&](const StreamBound& better) {
    ASSERT_TRUE(first < 0 || better.period > last.period);
    if (first < 0) first = better.period;
    last = better;
  });
  ASSERT_LE(bound.period, *best) << bound.reason << "\n" << describe(problem, {}, {});
  ASSERT_EQ(bound.period, last.period);
  ASSERT_EQ(bound.reason, last.reason);
  ++tally.compared;
  tally.tight += bound.period == *best ? 1 : 0;
  tally.beyond_simple += bound.period > first ? 1 : 0;
}

TEST(StreamBound, is_never_above_the_best_of_all_placements_of_random_problems) {
  for (const Overlap overlap : {Overlap::kNone, Overlap::kFull}) {
    BoundTally tally;
    for (std::uint64_t i = 0; i < 1200; ++i) {
      Rng rng = Rng(61).split(i);
      const auto problem = random_problem(rng, {.max_ops = 2 + i % 6, .max_devices = 3});
      const Nanoseconds upper =
          i % 3 == 0 ? kNothingKnown : static_cast<Nanoseconds>(rng.below(99));
      ASSERT_NO_FATAL_FAILURE(compare_bound(*problem, overlap, upper, tally)) << i;
    }
    EXPECT_GT(tally.compared, 600);
    EXPECT_GT(tally.tight, tally.compared * 4 / 5);
    EXPECT_GT(tally.beyond_simple, 50);
  }
}

void compare_streams(const StreamCase& one, Overlap overlap, std::uint64_t seed, int tries,
                     BoundTally& tally) {
  for (int i = 0; i < tries; ++i) {
    Rng rng = Rng(seed).split(static_cast<std::uint64_t>(i));
    const auto problem = random_stream(rng, one);
    const Nanoseconds upper = i % 2 == 0 ? 1'000'000 : static_cast<Nanoseconds>(rng.below(2000));
    ASSERT_NO_FATAL_FAILURE(compare_bound(*problem, overlap, upper, tally)) << i;
  }
}

TEST(StreamBound, is_tight_for_many_small_streams_of_equal_devices) {
  BoundTally tally;
  compare_streams({.accelerators = 2, .ops = 8}, Overlap::kNone, 1, 150, tally);
  compare_streams({.accelerators = 3, .ops = 7}, Overlap::kNone, 2, 150, tally);
  EXPECT_GT(tally.tight, tally.compared * 9 / 10);
  EXPECT_GT(tally.beyond_simple, tally.compared / 2);
}

TEST(StreamBound, is_tight_for_many_small_streams_with_a_cpu_that_communicates_freely) {
  BoundTally tally;
  compare_streams({.accelerators = 2, .cpus = 1, .ops = 7}, Overlap::kNone, 3, 150, tally);
  compare_streams({.accelerators = 1, .cpus = 2, .ops = 7}, Overlap::kNone, 4, 150, tally);
  EXPECT_GT(tally.tight, tally.compared * 9 / 10);
  EXPECT_GT(tally.beyond_simple, tally.compared / 2);
}

TEST(StreamBound, holds_for_unequal_devices_and_tight_memory) {
  BoundTally tally;
  compare_streams({.accelerators = 3, .unequal = true, .ops = 7}, Overlap::kNone, 5, 100, tally);
  compare_streams({.accelerators = 2, .tight = true, .ops = 9}, Overlap::kNone, 6, 100, tally);
  compare_streams({.accelerators = 2, .cpus = 1, .tight = true, .ops = 7}, Overlap::kNone, 7, 100,
                  tally);
  EXPECT_GT(tally.compared, 200);
  EXPECT_GT(tally.tight, tally.compared * 2 / 3);
}

TEST(StreamBound, holds_where_channels_carry_the_communication) {
  BoundTally tally;
  compare_streams({.accelerators = 2, .ops = 8}, Overlap::kFull, 8, 150, tally);
  compare_streams({.accelerators = 3, .unequal = true, .ops = 7}, Overlap::kFull, 9, 150, tally);
  EXPECT_GT(tally.tight, tally.compared * 2 / 3);
  EXPECT_GT(tally.beyond_simple, tally.compared / 4);
}

TEST(StreamBound, is_the_given_period_once_that_is_proven_the_best) {
  Rng rng(71);
  int proven = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    Rng own = rng.split(i);
    const auto problem = random_stream(own, {.accelerators = 2, .cpus = 1, .ops = 6});
    const Nanoseconds best = best_of_all(*problem, Overlap::kNone).value();
    const StreamModel model(*problem, Overlap::kNone);
    const Nanoseconds bound = bound_stream(model, best, Budget{}).period;
    ASSERT_LE(bound, best);
    proven += bound == best ? 1 : 0;
  }
  EXPECT_GT(proven, 20);
}

TEST(StreamBound, stops_when_the_budget_is_spent_with_what_it_has) {
  Rng rng(73);
  const auto problem = random_stream(rng, {.accelerators = 3, .ops = 9});
  const StreamModel model(*problem, Overlap::kNone);
  const StreamBound first = bound_stream(model, kNothingKnown, rounds(0));
  EXPECT_GT(first.period, 0);
  const Budget some = rounds(2);
  EXPECT_GE(bound_stream(model, kNothingKnown, some).period, first.period);
  EXPECT_EQ(bound_stream(model, kNothingKnown, some).period,
            bound_stream(model, kNothingKnown, some).period);
}

TEST(StreamBound, of_one_device_is_all_its_work) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 30, {});
  graph.op("b", 12, {a});
  const auto problem = compile_timed(graph.build(), gpu_cluster(1));
  const StreamModel model(*problem, Overlap::kNone);
  EXPECT_EQ(bound_stream(model, kNothingKnown, Budget{}).period, 42'000);
}

// Ten ops of 10 us and no tensors: two devices of five, or three of which one has four.
TEST(StreamBound, knows_that_whole_ops_must_be_shared_out) {
  TimedGraph graph;
  for (int i = 0; i < 10; ++i) graph.op(fmt::format("op{}", i), 10, {});
  const auto shared = graph.build();
  const auto bound = [&](int devices) {
    const auto problem = compile_timed(shared, gpu_cluster(devices));
    return bound_stream(StreamModel(*problem, Overlap::kNone), kNothingKnown, Budget{}).period;
  };
  EXPECT_EQ(bound(2), 50'000);
  EXPECT_EQ(bound(3), 40'000);
  EXPECT_EQ(bound(4), 30'000);
}

// With more than a hundred ops, prices are first those of sets of them.
TEST(StreamBound, of_long_streams_is_below_what_a_search_finds_and_above_the_simple_bound) {
  for (std::uint64_t i = 0; i < 6; ++i) {
    Rng rng = Rng(75).split(i);
    const auto problem = random_stream(rng, {.accelerators = 4, .cpus = 1, .ops = 160});
    const StreamModel model(*problem, Overlap::kNone);
    StreamSearch search(model, 1, {}, {});
    const Budget moves = rounds(1'000'000);
    while (!moves.spent(search.moves())) search.round(moves, 0);
    const StreamBound bound = bound_stream(model, kNothingKnown, rounds(60));
    EXPECT_LE(bound.period, search.best().period);
    EXPECT_GT(bound.period, bound_stream(model, kNothingKnown, rounds(0)).period);
  }
}

TEST(CoveringRows, of_merged_atoms_share_the_price_of_a_nanosecond) {
  TimedGraph graph;
  const TensorId a = graph.op("a", 10, {}, 9000);
  const TensorId b = graph.op("b", 30, {a}, 1000);
  const TensorId c = graph.op("c", 0, {b}, 8000);
  graph.op("d", 50, {c});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const StreamModel model(*problem, Overlap::kNone);
  const auto contents = find_contents(model, find_device_classes(model), 90'000);
  const ContentGraph* only = &contents[0];
  const CoveringRows atoms(model, std::span(&only, 1));
  EXPECT_EQ(atoms.num_atoms(), 3U);
  EXPECT_EQ(atoms.atom_of(2), CoveringRows::kNoAtom);
  CoveringRows rows = atoms;
  rows.merge(model, 60'000);  // a with b, and c, which takes no time, with d
  EXPECT_EQ(rows.row_times(), (std::vector<double>{40'000, 50'000}));
  EXPECT_DOUBLE_EQ(rows.share(1), 0.75);
  EXPECT_EQ(rows.convert(atoms, {1, 2, 3}), (std::vector<double>{3, 3}));
  EXPECT_EQ(atoms.convert(rows, {4, 5}), (std::vector<double>{1, 3, 5}));
  // 0.6 and 1.8, of which the second gets what the first has too much.
  EXPECT_EQ(rows.round({2.4, 5}, 1), (std::vector<std::int32_t>{1, 1, 5}));
}

ContentGraph random_contents(Rng& rng, std::uint64_t units) {
  ContentGraph graph;
  for (std::uint32_t i = 0; i < units; ++i) {
    graph.items.push_back({i});
    graph.time.push_back(static_cast<Nanoseconds>(rng.below(20)));
    graph.memory.push_back(static_cast<Bytes>(rng.below(5)));
  }
  for (std::uint64_t i = rng.below(2 * units); i > 0; --i) {
    ContentNet net;
    for (std::uint32_t unit = 0; unit < units; ++unit) {
      if (rng.chance(3.0 / static_cast<double>(units))) net.units.push_back(unit);
    }
    net.outside = rng.chance(0.2);
    net.weight = static_cast<Nanoseconds>(rng.below(8));
    net.traffic = static_cast<Nanoseconds>(rng.below(5));
    if (net.units.size() + (net.outside ? 1 : 0) >= 2 && !net.units.empty()) {
      graph.nets.push_back(net);
    }
  }
  graph.order = order_units(graph);
  return graph;
}

struct Held {
  Nanoseconds load = 0;
  Nanoseconds traffic = 0;
  Bytes memory = 0;
  std::int64_t value = 0;
};

Held hold(const ContentGraph& graph, const std::vector<std::int32_t>& values, std::uint32_t set) {
  Held held;
  for (std::uint32_t unit = 0; unit < graph.num_units(); ++unit) {
    if ((set >> unit & 1) == 0) continue;
    held.load += graph.time[unit];
    held.memory += graph.memory[unit];
    held.value += values[unit];
  }
  for (const ContentNet& net : graph.nets) {
    std::size_t inside = 0;
    for (const std::uint32_t unit : net.units) inside += set >> unit & 1;
    if (inside == 0 || (inside == net.units.size() && !net.outside)) continue;
    held.load += net.weight;
    held.traffic += net.traffic;
  }
  return held;
}

class PricerCheck {
 public:
  explicit PricerCheck(std::uint64_t seed) : rng_(seed), graph_(random_contents(rng_, 8)) {
    for (std::uint32_t i = 0; i < graph_.num_units(); ++i) {
      values_.push_back(static_cast<std::int32_t>(rng_.below(12)));
    }
  }

  const ContentGraph& graph() const { return graph_; }
  ContentPricer pricer(Bytes capacity, std::size_t max_cells) const {
    return ContentPricer(graph_, capacity, kLimit, max_cells, kTop);
  }
  void run(ContentPricer& pricer, std::int64_t price = 0) const {
    ASSERT_TRUE(pricer.run({values_, price}, kTop, [] { return false; }));
  }

  // The most that contents of at most this load are worth.
  std::int64_t most(Nanoseconds load, Bytes capacity, double price = 0) const {
    double best = 0;
    for (std::uint32_t set = 0; set < 1U << graph_.num_units(); ++set) {
      const Held held = hold(graph_, values_, set);
      if (held.load > load || held.memory > capacity) continue;
      const double worth =
          static_cast<double>(held.value) - price * static_cast<double>(held.traffic);
      best = std::max(best, worth);
    }
    return static_cast<std::int64_t>(best);
  }
  Held held(const PricedContent& content) const {
    std::uint32_t set = 0;
    for (const std::uint32_t unit : content.units) set |= 1U << unit;
    return hold(graph_, values_, set);
  }

  static constexpr Nanoseconds kLimit = 60;
  static constexpr std::int32_t kTop = 100;

 private:
  Rng rng_;
  ContentGraph graph_;
  std::vector<std::int32_t> values_;
};

TEST(ContentPricer, finds_the_content_worth_most_for_every_load) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const PricerCheck check(seed);
    ContentPricer pricer = check.pricer(kUnlimited, 1 << 22);
    ASSERT_EQ(pricer.nets_eased(), 0U);
    check.run(pricer);
    for (Nanoseconds load = 0; load <= PricerCheck::kLimit; load += 3) {
      ASSERT_EQ(pricer.most(load), check.most(load, kUnlimited)) << seed << " " << load;
      const PricedContent content = pricer.content(load);
      const Held held = check.held(content);
      ASSERT_EQ(held.value, pricer.most(load)) << seed;
      ASSERT_EQ(held.load, content.load) << seed;
      ASSERT_EQ(held.traffic, content.traffic) << seed;
      ASSERT_LE(held.load, load) << seed;
    }
  }
}

TEST(ContentPricer, is_never_too_low_when_there_is_no_room_for_all_states) {
  int eased = 0;
  int higher = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const PricerCheck check(seed);
    ContentPricer pricer = check.pricer(kUnlimited, 808 * (1 + seed % 3));
    check.run(pricer);
    eased += pricer.nets_eased() > 0 ? 1 : 0;
    for (Nanoseconds load = 0; load <= PricerCheck::kLimit; load += 3) {
      ASSERT_GE(pricer.most(load), check.most(load, kUnlimited)) << seed << " " << load;
      higher += pricer.most(load) > check.most(load, kUnlimited) ? 1 : 0;
    }
  }
  EXPECT_GT(eased, 100);
  EXPECT_GT(higher, 100);
}

TEST(ContentPricer, counts_memory_where_it_can_run_out) {
  int exact = 0;
  int loads = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const PricerCheck check(seed);
    const auto capacity = static_cast<Bytes>(4 + seed % 8);
    ContentPricer pricer = check.pricer(capacity, 1 << 22);
    check.run(pricer);
    for (Nanoseconds load = 0; load <= PricerCheck::kLimit; load += 6) {
      ASSERT_GE(pricer.most(load), check.most(load, capacity)) << seed << " " << load;
      exact += pricer.most(load) == check.most(load, capacity) ? 1 : 0;
      ++loads;
    }
  }
  EXPECT_GT(exact, loads * 9 / 10);
}

TEST(ContentPricer, takes_the_price_of_traffic_off_but_never_too_much) {
  int lowered = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const PricerCheck check(seed);
    ContentPricer pricer = check.pricer(kUnlimited, 1 << 22);
    const double price = 0.5 * static_cast<double>(seed % 4);
    check.run(pricer,
              static_cast<std::int64_t>(
                  price * static_cast<double>(std::int64_t{1} << ContentValues::kTrafficShift)));
    for (Nanoseconds load = 0; load <= PricerCheck::kLimit; load += 6) {
      ASSERT_GE(pricer.most(load), check.most(load, kUnlimited, price)) << seed << " " << load;
      lowered += pricer.most(load) < check.most(load, kUnlimited) ? 1 : 0;
    }
  }
  EXPECT_GT(lowered, 100);
}

TEST(ContentPricer, stops_when_told_to) {
  const PricerCheck check(1);
  ContentPricer pricer = check.pricer(kUnlimited, 1 << 20);
  EXPECT_FALSE(pricer.run({std::vector<std::int32_t>(8, 1), 0}, 10, [] { return true; }));
}

// Three rows, contents of two each: one and a half contents are needed.
TEST(CoveringMaster, needs_half_contents_where_three_rows_are_held_in_pairs) {
  const std::vector<std::int64_t> sizes{1};
  CoveringMaster master(3, sizes, 0);
  EXPECT_TRUE(master.add({0, {0, 1}, {1, 1}, 10, 0}));
  EXPECT_TRUE(master.add({0, {1, 2}, {1, 1}, 10, 0}));
  EXPECT_TRUE(master.add({0, {0, 2}, {1, 1}, 10, 0}));
  EXPECT_FALSE(master.add({0, {0, 2}, {1, 1}, 10, 0}));
  EXPECT_TRUE(master.add({0, {0, 1, 2}, {1, 1, 1}, 20, 0}));
  const CoveringSolution solution = master.solve(10, 60);
  ASSERT_TRUE(solution.solved);
  EXPECT_FALSE(solution.held_back);
  EXPECT_NEAR(solution.devices, 1.5, 1e-6);
  for (const double price : solution.prices.rows) EXPECT_NEAR(price, 0.5, 1e-6);
  EXPECT_NEAR(master.solve(20, 60).devices, 1, 1e-6);
}

TEST(CoveringMaster, keeps_prices_within_their_bounds) {
  const std::vector<std::int64_t> sizes{1};
  CoveringMaster master(2, sizes, 0);
  master.add({0, {0}, {1}, 10, 0});
  master.add({0, {1}, {1}, 10, 0});
  master.set_price_bounds({0, 0}, {0.25, 1});
  const CoveringSolution solution = master.solve(10, 60);
  ASSERT_TRUE(solution.solved);
  EXPECT_TRUE(solution.held_back);
  EXPECT_NEAR(solution.prices.rows[0], 0.25, 1e-6);
}

}  // namespace
}  // namespace emplace
