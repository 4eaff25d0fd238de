// Moves evaluated by what they change must come out as full simulations do, in every corner: the
// property tests here use small problems full of ties, where order within an instant matters.
#include "sim/incremental.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "sim/simulator.h"

#include "support/random_problem.h"
#include "support/reference_simulator.h"
#include "support/timed_graph.h"

namespace emplace {
namespace {

// Moves per property test; EMPLACE_TEST_MOVES=1000000 looks further.
std::uint64_t num_moves(std::uint64_t usual) {
  const char* wanted = std::getenv("EMPLACE_TEST_MOVES");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

std::string describe(std::span<const Move> moves) {
  std::string text;
  for (const Move& move : moves) text += fmt::format("group {} to {}; ", move.group, move.device);
  return text;
}

Placement moved(const Problem& problem, Placement placement, std::span<const Move> moves) {
  for (const Move& move : moves) {
    for (const OpId op : problem.group_ops(move.group)) placement[op] = move.device;
  }
  return placement;
}

Move random_move(const Problem& problem, Rng& rng) {
  const auto group = static_cast<GroupId>(rng.below(problem.num_groups()));
  return {group, rng.pick(problem.allowed_devices(group))};
}

// One group, two that change places, a set, or a stretch of neighbours that go together.
std::vector<Move> random_moves(const Problem& problem, const Placement& placement, Rng& rng) {
  std::vector<Move> moves{random_move(problem, rng)};
  switch (rng.below(5)) {
    case 0: {
      const Move other = random_move(problem, rng);
      const DeviceId here = placement[problem.group_ops(moves[0].group)[0]];
      const DeviceId there = placement[problem.group_ops(other.group)[0]];
      if (problem.allowed(moves[0].group, there) && problem.allowed(other.group, here))
        return {{moves[0].group, there}, {other.group, here}};
      break;
    }
    case 1:
      for (std::uint64_t i = 1 + rng.below(5); i > 0; --i)
        moves.push_back(random_move(problem, rng));
      break;
    case 2:
      for (std::uint64_t i = 1 + rng.below(6); i > 0; --i) {
        const GroupId next = moves.back().group + 1;
        if (next == problem.num_groups() || !problem.allowed(next, moves[0].device)) break;
        moves.push_back({next, moves[0].device});
      }
      break;
    default:
      break;
  }
  return moves;
}

// A problem with a base placement, a full simulator, and an incremental one to hold against it.
class Comparison {
 public:
  Comparison(std::shared_ptr<const Problem> problem, Rng& rng)
      : problem_(std::move(problem)),
        schedule_(random_schedule(*problem_, rng)),
        order_(*problem_, schedule_),
        simulator_(std::make_shared<const Simulator>(problem_)),
        workspace_(simulator_->make_workspace()),
        incremental_(simulator_) {
    const Placement placement = random_placement(*problem_, rng);
    EXPECT_EQ(incremental_.set_base(placement, order_), full(placement)) << describe_base();
  }

  const Problem& problem() const { return *problem_; }
  const Placement& base() const { return incremental_.placement(); }

  // False when the moves do not lead to a valid placement.
  bool valid(std::span<const Move> moves) const {
    const Placement placement = moved(*problem_, base(), moves);
    return reference::refusal(problem_->graph(), problem_->cluster(), placement).empty();
  }

  void check(std::span<const Move> moves, Rng& rng) {
    const Evaluation expected = full(moved(*problem_, base(), moves));
    ASSERT_EQ(incremental_.evaluate(moves), expected) << describe_base() << describe(moves);
    for (const Evaluation& cutoff :
         {incremental_.base(), expected, Evaluation{expected.step + 1, expected.overflow},
          Evaluation{expected.step - static_cast<Nanoseconds>(rng.below(3000)), expected.overflow},
          Evaluation{expected.step, expected.overflow + static_cast<Bytes>(rng.below(2000))}}) {
      const Evaluation found = incremental_.evaluate(moves, cutoff);
      if (expected < cutoff) {
        ASSERT_EQ(found, expected) << describe_base() << describe(moves);
      } else {
        ASSERT_FALSE(found < cutoff) << describe_base() << describe(moves);
      }
    }
  }

  void accept(std::span<const Move> moves) {
    const Evaluation expected = full(moved(*problem_, base(), moves));
    ASSERT_EQ(incremental_.accept(moves), expected) << describe_base() << describe(moves);
    ASSERT_EQ(incremental_.base(), expected);
  }

  void check_times() {
    const Timeline timeline = simulator_->run(base(), schedule_);
    for (OpId op = 0; op < problem_->num_ops(); ++op) {
      const OpSpan span = incremental_.span(op);
      ASSERT_EQ(span.start, timeline.ops[op].start) << describe_base() << op;
      ASSERT_EQ(span.finish, timeline.ops[op].finish) << describe_base() << op;
      ASSERT_LE(incremental_.ready_time(op), span.start) << describe_base() << op;
    }
  }

 private:
  Evaluation full(const Placement& placement) {
    return simulator_->evaluate(placement, order_, *workspace_);
  }
  std::string describe_base() const { return emplace::describe(*problem_, base(), schedule_); }

  std::shared_ptr<const Problem> problem_;
  Schedule schedule_;
  ReadyOrder order_;
  std::shared_ptr<const Simulator> simulator_;
  Simulator::WorkspacePtr workspace_;
  IncrementalSimulator incremental_;
};

void compare_random_moves(Rng& rng, const RandomLimits& limits, std::uint64_t moves_in_all) {
  constexpr std::uint64_t kMovesPerProblem = 40;
  std::uint64_t done = 0;
  while (done < moves_in_all) {
    Comparison comparison(random_problem(rng, limits), rng);
    for (std::uint64_t i = 0; i < kMovesPerProblem; ++i, ++done) {
      const auto moves = random_moves(comparison.problem(), comparison.base(), rng);
      if (!comparison.valid(moves)) continue;
      comparison.check(moves, rng);
      if (rng.chance(0.1)) comparison.accept(moves);
      if (::testing::Test::HasFatalFailure()) return;
    }
    comparison.check_times();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Incremental, equals_full_simulation_on_moves_of_random_problems) {
  Rng rng(11);
  compare_random_moves(rng, {}, num_moves(60'000));
}

TEST(Incremental, equals_full_simulation_on_moves_of_tiny_problems) {
  Rng rng(12);
  compare_random_moves(rng, {.max_ops = 9, .max_devices = 3}, num_moves(60'000));
}

TEST(Incremental, equals_full_simulation_on_moves_of_larger_problems) {
  Rng rng(13);
  compare_random_moves(rng, {.max_ops = 400, .max_devices = 4}, num_moves(3'000));
}

// Ops by name on `count` devices, all on gpu0 at first.
struct Case {
  Case(TimedGraph graph, ClusterSpec cluster)
      : problem(compile_timed(graph.build(), std::move(cluster))),
        simulator(std::make_shared<const Simulator>(problem)),
        incremental(simulator) {
    incremental.set_base(Placement(problem->num_ops(), 0), {});
  }

  Move move(const std::string& op, DeviceId device) const {
    return {problem->group_of(*problem->graph().find_op(op)), device};
  }

  Evaluation full(std::span<const Move> moves) const {
    const auto workspace = simulator->make_workspace();
    return simulator->evaluate(moved(*problem, incremental.placement(), moves), {}, *workspace);
  }

  std::shared_ptr<const Problem> problem;
  std::shared_ptr<const Simulator> simulator;
  IncrementalSimulator incremental;
};

// `length` ops of 1 us, each reading the one before it; a byte takes a nanosecond to send.
TimedGraph chain_of(int length) {
  TimedGraph graph;
  TensorId last = graph.op("op0", 1, {});
  for (int i = 1; i < length; ++i) last = graph.op(fmt::format("op{}", i), 1, {last});
  return graph;
}

TEST(Incremental, simulates_only_around_a_move_and_shifts_the_rest) {
  Case chain(chain_of(10'000), gpu_cluster(2));
  EXPECT_EQ(chain.incremental.evaluate(chain.move("op5000", 1)),
            (Evaluation{10'000'000 + 2 * 1000, 0}));
  EXPECT_LT(chain.incremental.simulated_ops(), 10);
}

TEST(Incremental, jumps_from_one_moved_op_to_the_next) {
  Case chain(chain_of(10'000), gpu_cluster(2));
  const std::vector<Move> moves{chain.move("op9000", 1), chain.move("op10", 1),
                                chain.move("op11", 1)};
  EXPECT_EQ(chain.incremental.evaluate(moves), (Evaluation{10'000'000 + 4 * 1000, 0}));
  EXPECT_LT(chain.incremental.simulated_ops(), 20);
}

TEST(Incremental, stops_early_when_a_move_cannot_win) {
  Case chain(chain_of(10'000), gpu_cluster(2));
  std::vector<Move> moves;
  for (int i = 0; i < 10'000; i += 2) moves.push_back(chain.move(fmt::format("op{}", i), 1));
  const Evaluation base = chain.incremental.base();
  EXPECT_FALSE(chain.incremental.evaluate(moves, base) < base);
  const std::int64_t with_cutoff = chain.incremental.simulated_ops();
  EXPECT_EQ(chain.incremental.evaluate(moves), chain.full(moves));
  EXPECT_LT(with_cutoff, (chain.incremental.simulated_ops() - with_cutoff) / 2);
}

TEST(Incremental, memory_that_moves_alone_needs_no_simulation) {
  TimedGraph graph = chain_of(100);
  graph.parameter("unread", 5000);
  Case chain(std::move(graph), gpu_cluster(2, 6000));
  EXPECT_EQ(chain.incremental.base(), (Evaluation{100'000, 1000}));
  EXPECT_EQ(chain.incremental.evaluate(chain.move("unread", 1)), (Evaluation{100'000, 0}));
  EXPECT_EQ(chain.incremental.simulated_ops(), 0);
}

TEST(Incremental, moving_nothing_anywhere_is_the_base) {
  Case chain(chain_of(5), gpu_cluster(2));
  EXPECT_EQ(chain.incremental.evaluate(std::vector<Move>{}), chain.incremental.base());
  EXPECT_EQ(chain.incremental.evaluate(chain.move("op1", 0)), chain.incremental.base());
  const std::vector<Move> there_and_back{chain.move("op1", 1), chain.move("op1", 0)};
  EXPECT_EQ(chain.incremental.evaluate(there_and_back), chain.incremental.base());
  EXPECT_EQ(chain.incremental.simulated_ops(), 0);
}

TEST(Incremental, evaluations_leave_the_base_as_it_is) {
  Case chain(chain_of(20), gpu_cluster(3));
  const Evaluation once = chain.incremental.evaluate(chain.move("op7", 2));
  chain.incremental.evaluate(chain.move("op8", 1));
  EXPECT_EQ(chain.incremental.evaluate(chain.move("op7", 2)), once);
  EXPECT_EQ(chain.incremental.placement(), Placement(20, 0));
}

TEST(Incremental, says_when_ops_of_the_base_run) {
  TimedGraph graph;
  const TensorId first = graph.op("first", 2, {});
  graph.op("left", 3, {first});
  graph.op("right", 4, {first});
  Case fork(std::move(graph), gpu_cluster(2));
  EXPECT_EQ(fork.incremental.ready_time(2), 2000);
  EXPECT_EQ(fork.incremental.span(2).start, 5000);
  EXPECT_EQ(fork.incremental.span(2).finish, 9000);
  const Move apart = fork.move("right", 1);
  EXPECT_EQ(fork.incremental.accept(std::span(&apart, 1)), (Evaluation{7000, 0}));
  EXPECT_EQ(fork.incremental.span(2).start, 3000);
}

// A jump must not find a moved op, long finished here, in the gap that its new device would keep
// after the time at which it finished in the base.
TEST(Incremental, a_moved_op_does_not_keep_its_new_device_busy_after_a_jump) {
  TimedGraph graph;
  TensorId last = graph.op("moved", 1, {}, 10'000);
  for (int i = 0; i < 10; ++i) last = graph.op(fmt::format("op{}", i), 1, {last});
  ClusterSpec cluster = gpu_cluster(2);
  cluster.devices[1].gap = 5700;
  Case chain(std::move(graph), std::move(cluster));
  const std::vector<Move> moves{chain.move("moved", 1), chain.move("op4", 1)};
  EXPECT_EQ(chain.incremental.evaluate(moves), chain.full(moves));
}

}  // namespace
}  // namespace emplace
