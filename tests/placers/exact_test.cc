// Exact methods against every placement of small problems: the best where they say so, and bounds
// that no placement is below.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "sim/throughput.h"

#include "placer/run.h"

#include "placers/all.h"

#include "lp/integer_program.h"
#include "stream/assignment_program.h"
#include "stream/ideals.h"
#include "stream/split_units.h"
#include "support/all_placements.h"
#include "support/random_problem.h"
#include "support/timed_graph.h"
#include "support/tiny_graphs.h"

namespace emplace {
namespace {

constexpr const char* kBestOfSplits = "no split into consecutive parts has a lower period";

Objective stream(Overlap overlap) {
  return StreamPeriod{overlap};
}

// Whether the devices can be put in an order in which every forward op reads from its own device or
// earlier ones, and backward ops of groups without forward ops the other way round.
bool consecutive(const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  const DeviceId devices = problem.num_devices();
  std::vector<bool> has_forward(problem.num_groups(), false);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.phase(op) == Phase::kForward) has_forward[problem.group_of(op)] = true;
  }
  std::vector<bool> leads(static_cast<std::size_t>(devices) * devices, false);
  const auto order = [&](OpId before, OpId op) {
    if (graph.phase(before) != graph.phase(op) || graph.phase(op) == Phase::kUpdate) return;
    std::size_t from = placement[before];
    std::size_t to = placement[op];
    if (graph.phase(op) == Phase::kBackward) {
      if (has_forward[problem.group_of(before)] && has_forward[problem.group_of(op)]) return;
      std::swap(from, to);
    }
    if (from != to) leads[from * devices + to] = true;
  };
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const TensorId tensor : graph.inputs(op)) order(graph.producer(tensor), op);
    for (const OpId before : graph.after(op)) order(before, op);
  }
  for (std::size_t via = 0; via < devices; ++via) {
    for (std::size_t a = 0; a < devices; ++a) {
      for (std::size_t b = 0; b < devices; ++b) {
        if (leads[a * devices + via] && leads[via * devices + b]) leads[a * devices + b] = true;
      }
    }
  }
  for (std::size_t a = 0; a < devices; ++a) {
    if (leads[a * devices + a]) return false;
  }
  return true;
}

// The least value of all placements that fit; nothing where none does.
std::optional<Nanoseconds> exact_best(Evaluator& evaluator, bool consecutive_only) {
  std::optional<Nanoseconds> best;
  for_each_placement(evaluator.problem(), [&](const Placement& placement) {
    if (consecutive_only && !consecutive(evaluator.problem(), placement)) return;
    const Evaluation value = evaluator.evaluate(placement);
    if (value.fits() && (!best || value.step < *best)) best = value.step;
  });
  return best;
}

bool has_note(const PlaceResult& result, const std::string& text) {
  return std::any_of(result.notes.begin(), result.notes.end(),
                     [&](const std::string& note) { return note.find(text) != note.npos; });
}

PlaceResult place_exactly(const std::string& placer, PlaceContext& context,
                          std::int64_t evaluations, std::uint64_t seed = 1) {
  Budget budget;
  budget.evaluations = evaluations;
  return all_placers().make(MethodSpec::parse(placer))->place(context, budget, Rng(seed));
}

TEST(Ideals, are_all_sets_closed_downwards) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    Rng rng = Rng(5).split(i);
    const auto size = static_cast<std::uint32_t>(rng.below(9));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::uint32_t a = 0; a < size; ++a) {
      for (std::uint32_t b = a + 1; b < size; ++b) {
        if (rng.chance(0.3)) edges.emplace_back(a, b);
      }
    }
    std::set<std::uint32_t> closed;
    for (std::uint32_t set = 0; set < (1U << size); ++set) {
      const bool holds = std::all_of(edges.begin(), edges.end(), [&](const auto& edge) {
        return (set >> edge.second & 1) == 0 || (set >> edge.first & 1) != 0;
      });
      if (holds) closed.insert(set);
    }
    const auto successors = Csr<std::uint32_t>::from_pairs(size, edges);
    EXPECT_FALSE(IdealLattice::enumerate(successors, closed.size() - 1));
    const auto lattice = IdealLattice::enumerate(successors, closed.size());
    ASSERT_TRUE(lattice);
    ASSERT_EQ(lattice->size(), closed.size());
    std::vector<std::uint32_t> sets;
    for (std::uint32_t ideal = 0; ideal < lattice->size(); ++ideal) {
      std::uint32_t set = 0;
      for (const std::uint32_t element : lattice->elements(ideal)) set |= 1U << element;
      sets.push_back(set);
    }
    EXPECT_EQ(std::set<std::uint32_t>(sets.begin(), sets.end()), closed);
    for (std::uint32_t ideal = 0; ideal < lattice->size(); ++ideal) {
      std::size_t larger = 0;
      for (std::uint32_t element = 0; element < size; ++element) {
        const std::uint32_t with = sets[ideal] | 1U << element;
        larger += with != sets[ideal] && closed.contains(with) ? 1 : 0;
      }
      ASSERT_EQ(lattice->steps(ideal).size(), larger);
      for (const auto& [element, next] : lattice->steps(ideal)) {
        EXPECT_EQ(sets[next], sets[ideal] | 1U << element);
        EXPECT_GT(next, ideal);
      }
    }
  }
}

TEST(Dp, finds_the_least_period_of_all_consecutive_parts_where_it_says_so) {
  for (const Overlap overlap : {Overlap::kNone, Overlap::kFull}) {
    int claimed = 0;
    int several = 0;
    for (std::uint64_t i = 0; i < 600; ++i) {
      Rng rng = Rng(71).split(i);
      const auto problem =
          random_problem(rng, {.max_ops = 2 + i % 7, .max_devices = 3, .all_alive = true});
      PlaceContext context(problem, stream(overlap));
      const PlaceResult result = place_exactly("dp", context, 100);
      const Evaluation value = context.evaluator().evaluate(result.placement);
      const std::optional<Nanoseconds> best = exact_best(context.evaluator(), true);
      const std::string text = describe(*problem, result.placement, {});
      if (has_note(result, "found no consecutive parts")) continue;
      ASSERT_TRUE(consecutive(*problem, result.placement)) << i << "\n" << text;
      ASSERT_TRUE(best) << i << "\n" << text;
      ASSERT_TRUE(value.fits()) << i << "\n" << text;
      ASSERT_GE(value.step, *best) << i << "\n" << text;
      if (!has_note(result, kBestOfSplits)) continue;
      ASSERT_EQ(value.step, *best) << i << "\n" << text;
      ++claimed;
      several += std::set<DeviceId>(result.placement.begin(), result.placement.end()).size() > 1;
    }
    EXPECT_GT(claimed, 200);
    EXPECT_GT(several, 40);
  }
}

// Where loads are sums over devices, the least estimate is the period, and nothing is left out.
TEST(Dp, is_exact_for_equal_links_and_devices_that_pay_for_communication) {
  int fitting = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    Rng rng = Rng(72).split(i);
    const auto random = random_problem(rng, {.max_ops = 8, .max_devices = 3});
    ClusterSpec spec = random->cluster().spec();
    spec.links = {LinkRule{.bandwidth = 1'000'000'000}};
    const auto problem = compile(std::make_shared<const Graph>(random->graph()),
                                 std::make_shared<const Cluster>(std::move(spec)),
                                 CompileOptions{.cost = CostMode::kMeasured});
    PlaceContext context(problem, stream(Overlap::kNone));
    const std::optional<Nanoseconds> best = exact_best(context.evaluator(), true);
    const PlaceResult result = place_exactly("dp", context, 100);
    const std::string text = describe(*problem, result.placement, {});
    ASSERT_EQ(has_note(result, kBestOfSplits), best.has_value()) << i << "\n" << text;
    if (!best) continue;
    ++fitting;
    EXPECT_EQ(context.evaluator().evaluate(result.placement).step, *best) << i << "\n" << text;
  }
  EXPECT_GT(fitting, 100);
}

TEST(Dp, cuts_lists_of_ops_when_there_are_too_many_ideals) {
  TimedGraph graph;
  std::vector<TensorId> leaves;
  for (int i = 0; i < 24; ++i) leaves.push_back(graph.op(fmt::format("leaf{}", i), 10, {}, 0));
  graph.op("root", 10, leaves);
  const auto problem = compile_timed(graph.build(), gpu_cluster(5));
  PlaceContext context(problem, stream(Overlap::kNone));
  const PlaceResult result = place_exactly("dp(ideals=1000)", context, 100);
  EXPECT_TRUE(has_note(result, "more than 1000 ideals"));
  EXPECT_EQ(context.evaluator().evaluate(result.placement).step,
            50'000);  // 25 ops of 10 us on 5 devices
}

TEST(Dp, keeps_backward_ops_with_their_forward_ops_and_cuts_between_layers) {
  TimedGraph graph;
  std::vector<TensorId> activations;
  TensorId last = graph.source("x", "input");
  for (int i = 0; i < 4; ++i) {
    last = graph.op(fmt::format("f{}", i), 10, {last});
    activations.push_back(last);
  }
  for (int i = 3; i >= 0; --i) {
    last = graph.backward(fmt::format("b{}", i), 20, {last, activations[static_cast<size_t>(i)]});
  }
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  PlaceContext context(problem, stream(Overlap::kNone));
  const PlaceResult result = place_exactly("dp", context, 100);
  // Two layers each, 60 us, and 1 us each for the activation and the gradient at the cut.
  EXPECT_EQ(context.evaluator().evaluate(result.placement).step, 62'000);
  EXPECT_TRUE(has_note(result, kBestOfSplits));
}

TEST(Dp, fits_a_step_that_no_single_device_holds) {
  const auto& problem = tiny_case("big_parameters_on_two_tight").problem;
  PlaceContext context(problem);
  const PlaceResult result = place_exactly("dp", context, 100);
  EXPECT_TRUE(context.evaluator().evaluate(result.placement).fits());
}

TEST(Dp, uses_one_device_for_a_step_that_splitting_makes_longer) {
  const auto& problem = tiny_case("chain_on_two_far_apart").problem;
  PlaceContext context(problem);
  const PlaceResult result = place_exactly("dp", context, 100);
  EXPECT_EQ(std::set<DeviceId>(result.placement.begin(), result.placement.end()).size(), 1U);
}

TEST(IntegerProgram, solves_a_knapsack_and_proves_it) {
  IntegerProgram program;
  const std::vector<double> worth{9, 11, 13, 15, 6};
  const std::vector<double> size{6, 5, 9, 7, 2};
  IntegerProgram::Row weight;
  for (std::size_t i = 0; i < worth.size(); ++i) {
    weight.push_back({program.add_binary(-worth[i]), size[i]});
  }
  program.at_most(weight, 15);
  int told = 0;
  IntegerProgram::Limits limits;
  limits.on_solution = [&](const std::vector<double>&) { ++told; };
  const IntegerProgram::Result result = program.solve(limits);
  EXPECT_TRUE(result.finished);
  EXPECT_NEAR(result.bound, -32, 1e-6);
  ASSERT_EQ(result.best.size(), 5U);
  EXPECT_NEAR(result.best[1] + result.best[3] + result.best[4], 3, 1e-6);
  EXPECT_GT(told, 0);
}

TEST(IntegerProgram, says_when_there_is_no_solution) {
  IntegerProgram program;
  const int a = program.add_binary();
  const int b = program.add_binary();
  program.equals({{a, 2}, {b, 2}}, 3);
  const IntegerProgram::Result result = program.solve({});
  EXPECT_TRUE(result.finished);
  EXPECT_TRUE(result.best.empty());
}

TEST(IntegerProgram, bounds_are_rounded_to_what_a_sum_of_whole_steps_can_be) {
  EXPECT_EQ(certain_bound(1'000'000.2, 1000), 1'000'000);
  EXPECT_EQ(certain_bound(999'000.9, 1000), 999'000);
  EXPECT_EQ(certain_bound(999'100, 1000), 1'000'000);
  EXPECT_LT(certain_bound(1e9, 1), 1'000'000'000);
  EXPECT_EQ(certain_bound(-5, 1), 0);
}

struct Tally {
  int compared = 0;
  int solved = 0;
  int proven = 0;
  int settled = 0;  // one or the other
};

// Against the best of all placements that fit: nothing proven is above it, and what is solved to
// the end is it.
void compare(const std::shared_ptr<const Problem>& problem, const Objective& objective,
             std::int64_t evaluations, Tally& tally) {
  PlaceContext context(problem, objective);
  const PlaceResult result = place_exactly("ip", context, evaluations);
  const Nanoseconds bound = context.incumbent().bound().step;
  const Evaluation value = context.evaluator().evaluate(result.placement, result.schedule);
  Evaluator fresh(problem, objective);
  const std::optional<Nanoseconds> best = exact_best(fresh, false);
  const std::string text = describe(*problem, result.placement, result.schedule);
  if (!best) return;
  ++tally.compared;
  ASSERT_LE(bound, *best) << text;
  const bool solved = has_note(result, "solved to the end");
  const bool proven = value.fits() && value.step <= bound;
  tally.solved += solved ? 1 : 0;
  tally.proven += proven ? 1 : 0;
  tally.settled += solved || proven ? 1 : 0;
  if (solved) {
    const auto close = static_cast<double>(*best) * (1 + kSolverPrecision);
    if (!objective.order_matters()) {
      ASSERT_LE(static_cast<double>(value.step), close) << text;
    }
  }
  if (proven) {
    ASSERT_LE(value.step, *best) << text;
  }
}

TEST(Ip, finds_and_proves_least_periods_of_random_streams) {
  for (const Overlap overlap : {Overlap::kNone, Overlap::kFull}) {
    Tally tally;
    for (std::uint64_t i = 0; i < 250; ++i) {
      Rng rng = Rng(91).split(i);
      const auto problem =
          random_problem(rng, {.max_ops = 2 + i % 7, .max_devices = 3, .all_alive = true});
      ASSERT_NO_FATAL_FAILURE(compare(problem, stream(overlap), 100'000, tally)) << i;
    }
    EXPECT_GT(tally.compared, 150);
    EXPECT_EQ(tally.settled, tally.compared);
    EXPECT_GT(tally.solved, tally.compared / 2);
    EXPECT_GT(tally.proven, tally.compared * 19 / 20);
  }
}

TEST(Ip, has_valid_bounds_however_early_it_is_stopped) {
  for (const Objective& objective : {stream(Overlap::kNone), stream(Overlap::kFull), Objective{}}) {
    Tally tally;
    for (std::uint64_t i = 0; i < 80; ++i) {
      Rng rng = Rng(92).split(i);
      const auto problem = random_problem(rng, {.max_ops = 9, .max_devices = 3});
      ASSERT_NO_FATAL_FAILURE(
          compare(problem, objective, static_cast<std::int64_t>(rng.below(30)), tally))
          << i;
    }
    EXPECT_GT(tally.compared, 40);
  }
}

// Orders of ops other than the one of arrival count too.
TEST(Ip, is_never_above_the_shortest_step_in_any_order) {
  Tally tally;
  for (std::uint64_t i = 0; i < 120; ++i) {
    Rng rng = Rng(93).split(i);
    const auto problem = random_problem(rng, {.max_ops = 2 + i % 6, .max_devices = 3});
    ASSERT_NO_FATAL_FAILURE(compare(problem, {}, 100'000, tally)) << i;
    PlaceContext context(problem);
    place_exactly("ip", context, 100'000);
    const Nanoseconds bound = context.incumbent().bound().step;
    for_each_placement(*problem, [&](const Placement& placement) {
      for (int j = 0; j < 4; ++j) {
        const Schedule schedule = random_schedule(*problem, rng);
        const Evaluation value = context.evaluator().evaluate(placement, schedule);
        if (value.fits()) {
          EXPECT_GE(value.step, bound) << describe(*problem, placement, schedule);
        }
      }
    });
  }
  EXPECT_GT(tally.compared, 80);
  EXPECT_GT(tally.proven, tally.compared * 9 / 10);
}

TEST(Ip, begins_from_what_it_is_given_and_is_never_worse) {
  const auto& problem = tiny_case("fork_join_on_four_on_a_bus").problem;
  for (const Objective& objective : {stream(Overlap::kNone), Objective{}}) {
    Evaluator plain(problem, objective);
    Rng rng(3);
    Solution start{random_placement(*problem, rng), {}, {}, "random"};
    start.value = plain.evaluate(start.placement);
    PlaceContext context(problem, objective, {start});
    const PlaceResult result = place_exactly("ip", context, 40);
    EXPECT_LE(context.evaluator().evaluate(result.placement, result.schedule).step,
              start.value.step);
  }
}

TEST(Ip, proves_nothing_of_a_model_that_it_had_to_coarsen) {
  const auto& problem = tiny_case("fork_join_on_four_on_a_bus").problem;
  for (const Objective& objective : {stream(Overlap::kNone), Objective{}}) {
    PlaceContext context(problem, objective);
    const PlaceResult result = place_exactly("ip(items=4,tasks=4)", context, 200);
    EXPECT_TRUE(has_note(result, "clusters of ops"));
    EXPECT_EQ(context.incumbent().bound().step, 0);
  }
}

// The rest stays where it was, and no other choice for the free items is better.
TEST(AssignmentProgram, solves_for_some_items_while_the_others_stay) {
  int compared = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Rng rng = Rng(94).split(i);
    const auto problem = random_problem(rng, {.max_ops = 9, .max_devices = 3, .all_alive = true});
    const Overlap overlap = i % 2 == 0 ? Overlap::kNone : Overlap::kFull;
    const StreamModel model(*problem, overlap);
    const StreamLevel level(model);
    const Placement placement = random_placement(*problem, rng);
    std::vector<DeviceId> start;
    std::vector<bool> free;
    for (GroupId group = 0; group < problem->num_groups(); ++group) {
      start.push_back(placement[problem->group_ops(group).front()]);
      free.push_back(rng.chance(0.5));
    }
    if (model.multicast() && overlap == Overlap::kNone) continue;
    PlaceContext context(problem, stream(overlap));
    if (!context.evaluator().evaluate(placement).fits()) continue;
    Nanoseconds best = context.evaluator().evaluate(placement).step;
    for_each_placement(*problem, [&](const Placement& other) {
      for (GroupId group = 0; group < problem->num_groups(); ++group) {
        if (!free[group] && other[problem->group_ops(group).front()] != start[group]) return;
      }
      const Evaluation value = context.evaluator().evaluate(other);
      if (value.fits()) best = std::min(best, value.step);
    });
    const AssignmentProgram::Result result = AssignmentProgram(level, start, free).solve({});
    ASSERT_TRUE(result.finished);
    for (GroupId group = 0; group < problem->num_groups(); ++group) {
      if (free[group]) continue;
      ASSERT_EQ(result.device_of[group], start[group]);
    }
    const Evaluation value =
        context.evaluator().evaluate(expand_groups(*problem, result.device_of));
    EXPECT_TRUE(value.fits()) << i;
    EXPECT_EQ(value.step, best) << i << "\n" << describe(*problem, placement, {});
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace emplace
