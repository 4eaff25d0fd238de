// The stream search: optima of small problems by brute force, known optima of published workloads,
// and what it promises about budgets, starts and threads.
#include "stream/search.h"

#include <optional>

#include <gtest/gtest.h>

#include "base/error.h"

#include "sim/throughput.h"

#include "stream/chain.h"
#include "stream/level.h"
#include "stream/population.h"
#include "support/budgets.h"
#include "support/random_problem.h"
#include "support/streams.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

// Rounds until the budget is spent or the lower bound is reached.
StreamSolution search_stream(const StreamModel& model, std::uint64_t seed, const Budget& budget,
                             Nanoseconds lower_bound,
                             std::span<const std::vector<DeviceId>> starts = {},
                             const StreamSearch::Listener& on_improvement = {}) {
  StreamSearch search(model, seed, starts, on_improvement);
  const auto done = [&] {
    return search.best().overflow == 0 && search.best().period <= lower_bound;
  };
  while (search.open() && !done() && !budget.spent(search.moves())) {
    search.round(budget, lower_bound);
  }
  return search.best();
}

StreamSolution search(const StreamModel& model, std::int64_t count) {
  return search_stream(model, 1, evaluations(count), 0);
}

std::optional<Evaluation> value_of(const Problem& problem, const std::vector<DeviceId>& device_of,
                                   Overlap overlap) {
  return value_of_stream(problem, expand_groups(problem, device_of), overlap);
}

TEST(StreamSearch, finds_the_optimum_of_small_random_problems) {
  int several_devices = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    Rng rng = Rng(21).split(i);
    const auto problem = random_problem(rng, {.max_ops = 9, .max_devices = 4});
    if (problem->num_groups() > 7 || !has_linked_devices(*problem)) continue;
    for (const Overlap overlap : {Overlap::kFull, Overlap::kNone}) {
      const Evaluation expected = best_of_all_streams(*problem, overlap).value();
      const StreamModel model(*problem, overlap);
      const StreamSolution found =
          search_stream(model, i, evaluations(40'000), expected.fits() ? expected.step : 0);
      const std::string text = describe(*problem, {}, {});
      ASSERT_EQ(found.overflow, expected.overflow) << text;
      ASSERT_EQ(found.period, expected.step) << text;
      ASSERT_EQ(value_of(*problem, found.device_of_item, overlap), expected) << text;
    }
    several_devices += problem->num_devices() > 1 && problem->num_groups() > 3 ? 1 : 0;
  }
  EXPECT_GT(several_devices, 100);
}

TEST(StreamSearch, answers_the_same_for_every_number_of_threads) {
  for (std::uint64_t i = 0; i < 6; ++i) {
    Rng rng = Rng(22).split(i);
    const auto problem = random_problem(rng, {.max_ops = 60, .max_devices = 5});
    if (!has_linked_devices(*problem)) continue;
    const StreamModel model(*problem, Overlap::kNone);
    const auto run = [&](int threads, Nanoseconds bound) {
      Budget budget = evaluations(200'000);
      budget.threads = threads;
      return search_stream(model, 3, budget, bound);
    };
    const StreamSolution one = run(1, 0);
    EXPECT_EQ(one.device_of_item, run(3, 0).device_of_item);
    EXPECT_EQ(one.device_of_item, run(8, 0).device_of_item);
    // Where several tasks reach the bound, too.
    EXPECT_EQ(run(1, one.period).device_of_item, run(4, one.period).device_of_item);
  }
}

TEST(StreamSearch, reports_each_improvement_and_ends_at_the_lower_bound) {
  const Problem& problem = *tiny_case("chain_on_two_equal").problem;
  const StreamModel model(problem, Overlap::kFull);
  std::vector<Nanoseconds> periods;
  // Without the bound it would use up a budget that nobody waits for.
  const StreamSolution found =
      search_stream(model, 1, evaluations(std::int64_t{1} << 60), 200'000, {},
                    [&](const StreamSolution& better) { periods.push_back(better.period); });
  EXPECT_EQ(found.period, 200'000);
  ASSERT_FALSE(periods.empty());
  EXPECT_EQ(periods.back(), 200'000);
  EXPECT_TRUE(std::is_sorted(periods.rbegin(), periods.rend()));
}

TEST(StreamSearch, is_never_worse_than_its_starts) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    Rng rng = Rng(23).split(i);
    const auto problem = random_problem(rng, {.max_ops = 40});
    if (!has_linked_devices(*problem)) continue;
    std::vector<DeviceId> start(problem->num_groups());
    const Placement placement = random_placement(*problem, rng);
    for (OpId op = 0; op < problem->num_ops(); ++op) start[problem->group_of(op)] = placement[op];
    const StreamModel model(*problem, Overlap::kNone);
    const StreamSolution found = search_stream(model, 1, evaluations(64), 0, {{start}});
    const Evaluation value{.step = found.period, .overflow = found.overflow};
    ASSERT_FALSE(*value_of(*problem, start, Overlap::kNone) < value) << describe(*problem, {}, {});
  }
}

TEST(StreamSearch, repairs_a_start_on_devices_that_its_items_may_not_use) {
  TimedGraph graph;
  OpSpec pinned{.name = "pinned", .type = "compute"};
  pinned.devices = {"gpu1"};
  graph.add(pinned, 5);
  graph.op("free", 5, {});
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  const StreamModel model(*problem, Overlap::kNone);
  const StreamSolution found = search_stream(model, 1, evaluations(0), 0, {{{0, 0}}});
  EXPECT_EQ(found.device_of_item[0], 1);
}

// Ten items of 100 bytes on two devices of 500, which do not all take equally long: the best
// balance would need 600 bytes on one.
TEST(StreamSearch, respects_memory_before_the_period) {
  TimedGraph graph;
  for (int i = 0; i < 10; ++i) {
    OpSpec op{.name = "op" + std::to_string(i), .type = "compute"};
    op.persistent_bytes = 100;
    graph.add(op, i < 4 ? 30 : 20, 0);
  }
  const auto tight = compile_timed(graph.build(), gpu_cluster(2, 500));
  const StreamSolution found = search(StreamModel(*tight, Overlap::kNone), 20'000);
  EXPECT_EQ(found.overflow, 0);
  EXPECT_EQ(found.period, 120'000);
  const ThroughputResult result =
      throughput(*tight, expand_groups(*tight, found.device_of_item), Overlap::kNone);
  EXPECT_EQ(result.memory, (std::vector<Bytes>{500, 500}));
}

TEST(StreamSearch, says_by_how_much_nothing_fits) {
  TimedGraph graph;
  for (int i = 0; i < 5; ++i) {
    OpSpec op{.name = "op" + std::to_string(i), .type = "compute"};
    op.persistent_bytes = 100;
    graph.add(op, 10, 0);
  }
  const auto problem = compile_timed(graph.build(), gpu_cluster(2, 220));
  EXPECT_EQ(search(StreamModel(*problem, Overlap::kNone), 20'000).overflow, 80);
}

TEST(StreamSearch, places_nothing_and_on_one_device_at_once) {
  const Problem& one = *tiny_case("diamond_on_one_device").problem;
  EXPECT_EQ(search(StreamModel(one, Overlap::kNone), std::int64_t{1} << 60).device_of_item,
            std::vector<DeviceId>(one.num_groups(), 0));
}

// s0 -> s1 -> ... -> s7, ten microseconds each.
std::shared_ptr<const Problem> chain_of_eight(ClusterSpec cluster) {
  TimedGraph graph;
  std::vector<TensorId> previous;
  for (int i = 0; i < 8; ++i) {
    OpSpec op{.name = "s" + std::to_string(i), .type = "compute", .inputs = previous};
    op.persistent_bytes = 10;
    previous = {graph.add(op, 10, 0)};
  }
  return compile_timed(graph.build(), std::move(cluster));
}

TEST(StreamChain, orders_items_behind_what_they_read) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    Rng rng = Rng(31).split(i);
    const auto problem = random_problem(rng, {.max_ops = 40});
    const StreamModel model(*problem, Overlap::kNone);
    const auto order = random_linear_order(model, rng);
    std::vector<std::uint32_t> place(model.num_items(), model.num_items());
    for (std::uint32_t at = 0; at < order.size(); ++at) place[order[at]] = at;
    ASSERT_EQ(order.size(), model.num_items());
    ASSERT_EQ(std::count(place.begin(), place.end(), model.num_items()), 0);
    if (problem->num_groups() != problem->num_ops()) continue;  // colocation may make cycles
    for (std::uint32_t net = 0; net < model.num_nets(); ++net) {
      for (const std::uint32_t sink : model.sinks(net)) {
        ASSERT_LT(place[model.source(net)], place[sink]);
      }
    }
  }
}

TEST(StreamChain, cuts_a_chain_into_equal_runs) {
  const auto problem = chain_of_eight(gpu_cluster(4));
  const StreamModel model(*problem, Overlap::kNone);
  Rng rng(1);
  const std::vector<DeviceId> devices{2, 0, 1, 3};
  EXPECT_EQ(split_order(model, random_linear_order(model, rng), devices),
            (std::vector<DeviceId>{2, 2, 0, 0, 1, 1, 3, 3}));
}

TEST(StreamChain, cuts_where_memory_ends) {
  ClusterSpec cluster = gpu_cluster(2, 30);
  cluster.devices[1].memory = 50;
  const auto problem = chain_of_eight(cluster);
  const StreamModel model(*problem, Overlap::kNone);
  Rng rng(1);
  EXPECT_EQ(split_order(model, random_linear_order(model, rng), std::vector<DeviceId>{0, 1}),
            (std::vector<DeviceId>{0, 0, 0, 1, 1, 1, 1, 1}));
}

TEST(StreamPopulation, does_not_tell_equal_devices_apart) {
  ClusterSpec cluster = gpu_cluster(3);
  cluster.devices[2].slowdown = Decimal{2, 0};
  const auto problem = chain_of_eight(cluster);
  const StreamModel model(*problem, Overlap::kNone);
  const StreamLevel level(model);
  const StreamPopulation population(level, 4);
  const std::vector<DeviceId> a{0, 0, 0, 0, 1, 1, 2, 2};
  EXPECT_DOUBLE_EQ(population.likeness(a, a), 1);
  EXPECT_DOUBLE_EQ(population.likeness(a, {1, 1, 1, 1, 0, 0, 2, 2}), 1);
  EXPECT_DOUBLE_EQ(population.likeness(a, {0, 0, 0, 0, 2, 2, 1, 1}), 0.5);
}

TEST(StreamPopulation, keeps_members_that_differ) {
  const auto problem = chain_of_eight(gpu_cluster(2));
  const StreamModel model(*problem, Overlap::kNone);
  const StreamLevel level(model);
  StreamPopulation population(level, 2);
  const auto add = [&](std::vector<DeviceId> device_of, Nanoseconds period) {
    population.add({std::move(device_of), {0, 0, period}});
  };
  add({0, 0, 0, 0, 1, 1, 1, 1}, 50);
  add({1, 1, 1, 1, 0, 0, 0, 0}, 60);  // the same, but worse
  EXPECT_EQ(population.members().size(), 1U);
  add({1, 1, 1, 1, 0, 0, 0, 0}, 40);
  EXPECT_EQ(population.members().size(), 1U);
  EXPECT_EQ(population.best().value.period, 40);
  add({0, 1, 0, 1, 0, 1, 0, 1}, 90);
  add({0, 0, 1, 1, 0, 0, 1, 1}, 80);  // in place of the worst
  add({0, 1, 1, 0, 0, 1, 1, 0}, 95);  // worse than all
  ASSERT_EQ(population.members().size(), 2U);
  EXPECT_EQ(population.members()[0].value.period, 40);
  EXPECT_EQ(population.members()[1].value.period, 80);
}

}  // namespace
}  // namespace emplace
