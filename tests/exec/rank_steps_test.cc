// A step that several ranks execute together is the step of one: the same numbers, bit for bit, the
// same rules, one record. Whatever goes wrong on a rank ends it on all. Ranks are threads here.
#include <chrono>
#include <cmath>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "cost/problem.h"

#include "exec/equal_bits.h"
#include "exec/local_peers.h"
#include "exec/ranks.h"
#include "exec/small_models.h"
#include "exec/test_machine.h"
#include "zoo/registry.h"

namespace emplace::exec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Nanoseconds kOneMillisecond = 1'000'000;

// Threads that share a machine; each executes its part of a program.
class RankTeam {
 public:
  RankTeam(int size, std::shared_ptr<const Cluster> cluster, const RuntimeOptions& options = {})
      : size_(size), cluster_(std::move(cluster)), machine_(cluster_, options), peers_(size) {
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<Ranks>(peers_.rank(rank), cluster_));
    }
  }

  Machine& machine() { return machine_; }
  LocalPeers& peers() { return peers_; }

  using Make = std::function<std::unique_ptr<StepProgram>(Ranks&)>;
  using Use = std::function<void(StepProgram&, Ranks&)>;
  // What each rank threw; empty: nothing.
  std::vector<std::string> run(const Make& make, const Use& use) {
    std::vector<std::string> errors(static_cast<std::size_t>(size_));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          load_and_use(*ranks_[static_cast<std::size_t>(rank)], make, use);
        } catch (const std::exception& error) {
          errors[static_cast<std::size_t>(rank)] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

 private:
  static void load_and_use(Ranks& ranks, const Make& make, const Use& use) {
    std::unique_ptr<StepProgram> program;
    std::optional<Error> error;
    try {
      program = make(ranks);
    } catch (const Error& thrown) {
      error = thrown;
    }
    StepProgram::join(ranks, program.get(), error);
    use(*program, ranks);
  }

  int size_;
  std::shared_ptr<const Cluster> cluster_;
  Machine machine_;
  LocalPeers peers_;
  std::vector<std::unique_ptr<Ranks>> ranks_;
};

void expect_no_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

struct RankComputed {
  std::vector<double> losses;
  std::vector<torch::Tensor> results;  // of the last step, by tensor
  std::vector<torch::Tensor> sources;  // after it, by tensor
};

constexpr int kRankSteps = 2;

void add_computed(const Graph& graph, StepProgram& program, std::vector<torch::Tensor>& results,
                  RankComputed& computed) {
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const bool source = graph.is_source(graph.producer(tensor));
    const torch::Tensor value = source ? program.source(tensor) : results[tensor];
    if (value.defined()) (source ? computed.sources : computed.results)[tensor] = value.clone();
  }
}

RankComputed compute_alone(const std::shared_ptr<const Graph>& graph,
                           const std::shared_ptr<const Cluster>& cluster,
                           const Placement& placement) {
  Machine machine(cluster, {});
  StepProgram program(machine, graph, placement, {.seed = 5}, training_sources(5));
  std::vector<torch::Tensor> results(graph->num_tensors());
  program.watch(&results);
  RankComputed computed{{},
                        std::vector<torch::Tensor>(graph->num_tensors()),
                        std::vector<torch::Tensor>(graph->num_tensors())};
  for (int i = 0; i < kRankSteps; ++i) {
    const StepRecord record = program.step();
    if (record.failure) throw Error(ErrorKind::kInput, record.failure->text);
    computed.losses.push_back(record.loss.value_or(0));
  }
  add_computed(*graph, program, results, computed);
  return computed;
}

RankComputed compute_on_ranks(const std::shared_ptr<const Graph>& graph,
                              const std::shared_ptr<const Cluster>& cluster,
                              const Placement& placement, int size) {
  RankTeam team(size, cluster);
  RankComputed computed{{},
                        std::vector<torch::Tensor>(graph->num_tensors()),
                        std::vector<torch::Tensor>(graph->num_tensors())};
  std::mutex mutex;
  std::vector<std::vector<double>> losses(static_cast<std::size_t>(size));
  const auto errors = team.run(
      [&](Ranks& ranks) {
        return std::make_unique<StepProgram>(team.machine(), graph, placement,
                                             ProgramOptions{.seed = 5}, training_sources(5),
                                             compile_op, &ranks);
      },
      [&](StepProgram& program, Ranks& ranks) {
        std::vector<torch::Tensor> results(graph->num_tensors());
        program.watch(&results);
        for (int i = 0; i < kRankSteps; ++i) {
          const StepRecord record = program.step();
          if (record.failure) throw Error(ErrorKind::kInput, record.failure->text);
          losses[static_cast<std::size_t>(ranks.rank())].push_back(record.loss.value_or(0));
        }
        const std::lock_guard lock(mutex);
        add_computed(*graph, program, results, computed);
      });
  expect_no_errors(errors);
  computed.losses = losses[0];
  for (const auto& of_rank : losses) EXPECT_EQ(of_rank, losses[0]);
  return computed;
}

Placement scattered(const Problem& problem, Rng& rng) {
  std::vector<DeviceId> devices;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    devices.push_back(static_cast<DeviceId>(rng.below(problem.num_devices())));
  }
  return expand_groups(problem, devices);
}

class RankStep : public ::testing::TestWithParam<const char*> {};

TEST_P(RankStep, computes_what_one_device_computes) {
  const auto graph = std::make_shared<const Graph>(zoo::build_model(GetParam()));
  const RankComputed alone =
      compute_alone(graph, shared_core_cluster(1), Placement(graph->num_ops(), 0));
  EXPECT_TRUE(std::isfinite(alone.losses.back())) << alone.losses.back();
  Rng rng(23);
  const auto cluster = shared_core_cluster(4);
  const auto problem = compile(graph, cluster, CostMode::kAnalytic);
  const RankComputed together = compute_on_ranks(graph, cluster, scattered(*problem, rng), 3);
  EXPECT_EQ(together.losses, alone.losses);
  for (TensorId tensor = 0; tensor < graph->num_tensors(); ++tensor) {
    const OpId op = graph->producer(tensor);
    EXPECT_TRUE(equal_bits(together.results[tensor], alone.results[tensor]))
        << "op " << graph->op_name(op) << " (" << graph->type(op) << ")";
    EXPECT_TRUE(equal_bits(together.sources[tensor], alone.sources[tensor]))
        << "source " << graph->op_name(op);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RankStep, ::testing::ValuesIn(kSmallModels),
                         [](const auto& test) { return name_of_model(test.param); });

OpSpec lasting(std::string name, std::vector<TensorId> inputs, Nanoseconds length) {
  OpSpec spec{.name = std::move(name), .type = "Timed", .inputs = std::move(inputs)};
  spec.attributes.set("length", length);
  return spec;
}

TensorSpec rank_floats(std::int64_t count) {
  TensorSpec spec;
  spec.shape = {count};
  spec.dtype = DType::kFloat32;
  return spec;
}

struct RankTried {
  StepRecord record;  // rank 0's, of the second step
  std::vector<Transfer> transfers;
  std::vector<MemoryRecord> memory;
};

RankTried try_on_ranks(GraphBuilder builder, const std::shared_ptr<const Cluster>& cluster,
                       const Placement& placement) {
  const auto graph = std::make_shared<const Graph>(std::move(builder).build());
  RankTeam team(static_cast<int>(cluster->num_devices()), cluster);
  RankTried tried;
  const auto errors = team.run(
      [&](Ranks& ranks) {
        return std::make_unique<StepProgram>(team.machine(), graph, placement, ProgramOptions{},
                                             sources_of_ones(), compile_waiting_op, &ranks);
      },
      [&](StepProgram& program, Ranks& ranks) {
        program.step();
        const StepRecord record = program.step();
        if (ranks.first()) tried = {record, program.transfers(), program.memory()};
      });
  expect_no_errors(errors);
  EXPECT_FALSE(tried.record.failure) << tried.record.failure->text;
  return tried;
}

TEST(RankRecord, has_every_op_and_transfer_of_all_ranks_by_one_clock) {
  GraphBuilder builder("chain");
  TensorId at = builder.add({.name = "x", .type = "input"}, {rank_floats(16)})[0];
  Placement placement{0};
  for (int i = 0; i < 6; ++i) {
    at = builder.add(lasting(fmt::format("op{}", i), {at}, kOneMillisecond),
                     {rank_floats(1'000'000)})[0];
    placement.push_back(static_cast<DeviceId>(i % 3));
  }
  const RankTried tried = try_on_ranks(std::move(builder), shared_core_cluster(3), placement);
  ASSERT_EQ(tried.record.ops.size(), 7U);
  Nanoseconds before = 0;
  for (OpId op = 1; op < 7; ++op) {
    EXPECT_GE(tried.record.ops[op].length(), kOneMillisecond) << op;
    EXPECT_GE(tried.record.ops[op].start, before) << op;
    before = tried.record.ops[op].end;
  }
  EXPECT_GE(tried.record.step, before);
  ASSERT_EQ(tried.record.transfers.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    const Interval& time = tried.record.transfers[i];
    EXPECT_GE(time.start, tried.record.ops[i + 1].end);
    EXPECT_LE(time.end, tried.record.ops[i + 2].start);
    EXPECT_GE(time.length(), 0);
  }
  for (const MemoryRecord& memory : tried.memory) EXPECT_GE(memory.peak, 4'000'000);
}

TEST(RankRules, a_throttled_link_between_ranks_carries_one_tensor_at_a_time) {
  GraphBuilder builder("sends");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {rank_floats(16)})[0];
  const auto both = builder.add(lasting("both", {x}, kOneMillisecond),
                                {rank_floats(1'000'000), rank_floats(1'000'000)});
  builder.add(lasting("first", {both[0]}, kOneMillisecond), {rank_floats(1)});
  builder.add(lasting("second", {both[1]}, kOneMillisecond), {rank_floats(1)});
  const auto cluster =
      shared_core_cluster(2, {.bandwidth = 200'000'000, .latency = 1000, .throttled = true});
  const RankTried tried = try_on_ranks(std::move(builder), cluster, {0, 0, 1, 1});
  ASSERT_EQ(tried.record.transfers.size(), 2U);
  const Interval& first = tried.record.transfers[0];
  const Interval& second = tried.record.transfers[1];
  EXPECT_GE(first.length(), 20 * kOneMillisecond);
  EXPECT_GE(second.length(), 20 * kOneMillisecond);
  EXPECT_GE(second.start, first.start + 20 * kOneMillisecond);
  EXPECT_GE(tried.record.ops[3].start, second.end);
}

TEST(RankRules, an_op_waits_for_those_of_other_ranks_it_comes_after) {
  GraphBuilder builder("after");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {rank_floats(16)})[0];
  builder.add(lasting("slow", {x}, 8 * kOneMillisecond), {rank_floats(1)});
  OpSpec later = lasting("later", {x}, kOneMillisecond);
  later.after = {"slow"};
  builder.add(later, {rank_floats(1)});
  const RankTried tried = try_on_ranks(std::move(builder), shared_core_cluster(2), {0, 0, 1});
  EXPECT_GE(tried.record.ops[2].start, tried.record.ops[1].end);
}

TEST(RankRules, an_update_waits_for_readers_of_its_parameter_on_other_ranks) {
  GraphBuilder builder("update");
  const TensorId w = builder.add({.name = "w", .type = "parameter"}, {rank_floats(16)})[0];
  OpSpec gradient = lasting("gradient", {w}, kOneMillisecond);
  gradient.phase = Phase::kBackward;
  const TensorId dw = builder.add(gradient, {rank_floats(16)})[0];
  OpSpec reader = lasting("reader", {w}, 10 * kOneMillisecond);
  reader.phase = Phase::kBackward;
  builder.add(reader, {rank_floats(16)});
  OpSpec update = lasting("update", {w, dw}, kOneMillisecond);
  update.phase = Phase::kUpdate;
  builder.add(update, {});
  const RankTried tried = try_on_ranks(std::move(builder), shared_core_cluster(2), {0, 0, 1, 0});
  EXPECT_GE(tried.record.ops[3].start, tried.record.ops[2].end);
}

std::shared_ptr<const Graph> rank_fault_graph(Rng& rng, int ops, Placement& placement,
                                              int devices) {
  GraphBuilder builder("faults");
  std::vector<TensorId> made = {builder.add({.name = "x", .type = "input"}, {rank_floats(64)})[0]};
  for (int i = 0; i < ops; ++i) {
    const auto length = static_cast<Nanoseconds>(rng.below(30'000));
    const auto spec =
        lasting(fmt::format("op{}", i), {made[rng.below(made.size())], made.back()}, length);
    made.push_back(builder.add(spec, {rank_floats(256)})[0]);
  }
  for (OpId op = 0; op < builder.num_ops(); ++op) {
    placement.push_back(static_cast<DeviceId>(rng.below(static_cast<std::uint64_t>(devices))));
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

enum class RankFault { kThrows, kRunsOut, kIsCancelled, kNone };

CompiledOp compile_rank_fault(const CompiledOp& plain, RankFault fault,
                              std::atomic<bool>& cancelled) {
  CompiledOp failing = plain;
  failing.run = [plain, fault, &cancelled](OpStep& step) {
    if (fault == RankFault::kThrows) throw std::runtime_error("it broke");
    if (fault == RankFault::kRunsOut) torch::empty({1 << 22});
    if (fault == RankFault::kIsCancelled) cancelled = true;
    plain.run(step);
  };
  return failing;
}

// After each, the same ranks go on with the next program: nothing of the failed one is left.
TEST(RankFaults, three_hundred_steps_that_fail_on_a_rank_end_on_all) {
  Rng rng(9);
  std::atomic<bool> cancelled{false};
  constexpr int kFaults = 300;
  constexpr int kPerTeam = 50;
  std::unique_ptr<RankTeam> team;
  for (int i = 0; i < kFaults; ++i) {
    const int ranks = 2 + i / kPerTeam % 2;
    const int devices = ranks + i / kPerTeam % 3;
    if (i % kPerTeam == 0) {
      team.reset();  // before the next one counts memory
      team =
          std::make_unique<RankTeam>(ranks, shared_core_cluster(devices, {}, /*memory=*/1 << 20),
                                     RuntimeOptions{.cancelled = &cancelled, .limit_memory = true});
    }
    Placement placement;
    const auto graph = rank_fault_graph(rng, 8, placement, devices);
    const auto fault = static_cast<RankFault>(rng.below(4));
    const auto bad = static_cast<OpId>(1 + rng.below(8));
    cancelled = false;
    std::vector<std::optional<Failure>> failures(static_cast<std::size_t>(ranks));
    const auto errors = team->run(
        [&](Ranks& of) {
          return std::make_unique<StepProgram>(
              team->machine(), graph, placement, ProgramOptions{}, sources_of_ones(),
              [&](const Graph& g, OpId op, const OpTarget& target) {
                const CompiledOp plain = compile_waiting_op(g, op, target);
                return op == bad ? compile_rank_fault(plain, fault, cancelled) : plain;
              },
              &of);
        },
        [&](StepProgram& program, Ranks& of) {
          failures[static_cast<std::size_t>(of.rank())] = program.step().failure;
        });
    expect_no_errors(errors);
    for (const auto& failure : failures) {
      ASSERT_EQ(failure.has_value(), fault != RankFault::kNone) << i;
      if (!failure) continue;
      if (fault == RankFault::kIsCancelled) {
        EXPECT_EQ(failure->kind, Failure::Kind::kCancelled);
        continue;
      }
      EXPECT_EQ(failure->kind,
                fault == RankFault::kThrows ? Failure::Kind::kOp : Failure::Kind::kMemory);
      EXPECT_THAT(failure->text,
                  AllOf(HasSubstr(fmt::format("op '{}' (Timed)", graph->op_name(bad))),
                        HasSubstr(fmt::format("device 'cpu{}'", placement[bad]))));
    }
  }
}

// 4 MiB over 100 KB/s are on their way for 42 s, which neither the sender nor the receiver waits
// for.
TEST(RankFaults, a_step_that_fails_waits_for_no_link) {
  GraphBuilder builder("sent");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {rank_floats(4)})[0];
  const TensorId z = builder.add({.name = "z", .type = "input"}, {rank_floats(4)})[0];
  const TensorId y = builder.add(lasting("big", {x}, 0), {rank_floats(1 << 20)})[0];
  builder.add(lasting("reader", {y}, 0), {rank_floats(1)});
  builder.add(lasting("bad", {z}, 0), {rank_floats(1)});
  const auto graph = std::make_shared<const Graph>(std::move(builder).build());
  constexpr OpId kBad = 4;
  RankTeam team(2, shared_core_cluster(2, {.bandwidth = 100'000, .throttled = true}));
  const Nanoseconds start = now();
  const auto errors = team.run(
      [&](Ranks& of) {
        return std::make_unique<StepProgram>(
            team.machine(), graph, Placement{0, 1, 0, 1, 1}, ProgramOptions{}, sources_of_ones(),
            [&](const Graph& g, OpId op, const OpTarget& target) {
              CompiledOp compiled = compile_waiting_op(g, op, target);
              if (op != kBad) return compiled;
              compiled.run = [](OpStep&) {
                std::this_thread::sleep_for(std::chrono::milliseconds(300));
                throw std::runtime_error("it broke");
              };
              return compiled;
            },
            &of);
      },
      [&](StepProgram& program, Ranks&) {
        const StepRecord record = program.step();
        ASSERT_TRUE(record.failure);
        EXPECT_THAT(record.failure->text, HasSubstr("op 'bad' (Timed) on device 'cpu1': it broke"));
      });
  expect_no_errors(errors);
  EXPECT_LT(now() - start, 5000 * kOneMillisecond);
}

TEST(RankFaults, a_rank_that_goes_silent_in_a_step_ends_it_on_the_others) {
  Rng rng(10);
  for (int i = 0; i < 30; ++i) {
    RankTeam team(3, shared_core_cluster(4));
    Placement placement;
    const auto graph = rank_fault_graph(rng, 12, placement, 4);
    const auto bad = static_cast<OpId>(1 + rng.below(12));
    const int gone = ranks_of_devices(team.machine().cluster(), 3)[placement[bad]];
    std::vector<std::optional<Failure>> failures(3);
    const auto errors = team.run(
        [&](Ranks& of) {
          return std::make_unique<StepProgram>(
              team.machine(), graph, placement, ProgramOptions{}, sources_of_ones(),
              [&](const Graph& g, OpId op, const OpTarget& target) {
                CompiledOp plain = compile_waiting_op(g, op, target);
                if (op != bad) return plain;
                CompiledOp failing = plain;
                failing.run = [plain, &team, gone](OpStep& step) {
                  team.peers().silence(gone);
                  plain.run(step);
                };
                return failing;
              },
              &of);
        },
        [&](StepProgram& program, Ranks& of) {
          failures[static_cast<std::size_t>(of.rank())] = program.step().failure;
          EXPECT_TRUE(program.step().failure);  // and every one after it, at once
        });
    expect_no_errors(errors);
    for (int rank = 0; rank < 3; ++rank) {
      // Whoever is cut off may have had all it needs of the others.
      if (rank == gone) continue;
      const auto& failure = failures[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(failure) << rank;
      EXPECT_EQ(failure->kind, Failure::Kind::kRank);
      EXPECT_THAT(failure->text,
                  AllOf(HasSubstr(fmt::format("rank {}, with device", gone)),
                        HasSubstr(fmt::format("'cpu{}'", placement[bad])), HasSubstr("lost")));
    }
  }
}

TEST(RankFaults, memory_that_runs_out_on_the_way_is_said_by_all) {
  GraphBuilder builder("sent");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {rank_floats(4)})[0];
  const TensorId y = builder.add(lasting("big", {x}, 0), {rank_floats(1 << 20)})[0];
  builder.add(lasting("reader", {y}, 0), {rank_floats(1)});
  const auto graph = std::make_shared<const Graph>(std::move(builder).build());
  ClusterSpec spec = shared_core_spec(2);
  spec.devices[1].memory = 1 << 20;
  RankTeam team(2, std::make_shared<const Cluster>(spec), {.limit_memory = true});
  const auto errors = team.run(
      [&](Ranks& ranks) {
        return std::make_unique<StepProgram>(team.machine(), graph, Placement{0, 0, 1},
                                             ProgramOptions{}, sources_of_ones(),
                                             compile_waiting_op, &ranks);
      },
      [&](StepProgram& program, Ranks&) {
        const StepRecord record = program.step();
        ASSERT_TRUE(record.failure);
        EXPECT_EQ(record.failure->kind, Failure::Kind::kMemory);
        EXPECT_THAT(record.failure->text,
                    HasSubstr("the result of op 'big' (Timed) on its way to device 'cpu1'"));
      });
  expect_no_errors(errors);
}

TEST(RankFaults, an_op_without_a_kernel_on_one_rank_is_named_on_all) {
  Rng rng(4);
  Placement placement;
  const auto graph = rank_fault_graph(rng, 6, placement, 1);
  placement = {0, 0, 0, 1, 1, 1, 1};
  RankTeam team(2, shared_core_cluster(2));
  const auto errors = team.run(
      [&](Ranks& ranks) {
        return std::make_unique<StepProgram>(
            team.machine(), graph, placement, ProgramOptions{}, sources_of_ones(),
            [&](const Graph& g, OpId op, const OpTarget& target) {
              if (op == 4) fail_input("op '{}': there is no kernel", g.op_name(op));
              return compile_waiting_op(g, op, target);
            },
            &ranks);
      },
      [](StepProgram&, Ranks&) { FAIL(); });
  for (const std::string& error : errors) EXPECT_EQ(error, "rank 1: op 'op3': there is no kernel");
}

TEST(RankFaults, ranks_that_have_read_something_else_are_told) {
  Rng rng(4);
  Placement placement;
  const auto graph = rank_fault_graph(rng, 6, placement, 2);
  Placement other = placement;
  other[3] = 1 - other[3];
  RankTeam team(2, shared_core_cluster(2));
  const auto errors = team.run(
      [&](Ranks& ranks) {
        return std::make_unique<StepProgram>(team.machine(), graph,
                                             ranks.first() ? placement : other, ProgramOptions{},
                                             sources_of_ones(), compile_waiting_op, &ranks);
      },
      [](StepProgram&, Ranks&) { FAIL(); });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("rank 1 has read another model, placement or cluster"));
  }
}

TEST(RankShares, are_in_order_and_even) {
  const auto cluster = shared_core_cluster(5);
  EXPECT_EQ(ranks_of_devices(*cluster, 1), (std::vector<int>{0, 0, 0, 0, 0}));
  EXPECT_EQ(ranks_of_devices(*cluster, 2), (std::vector<int>{0, 0, 0, 1, 1}));
  EXPECT_EQ(ranks_of_devices(*cluster, 5), (std::vector<int>{0, 1, 2, 3, 4}));
  try {
    ranks_of_devices(*cluster, 6);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("6 ranks"), HasSubstr("expected 1 to 5")));
  }
}

TEST(RankShares, a_channel_of_two_ranks_is_refused) {
  ClusterSpec spec = shared_core_spec(2);
  spec.links[0].channel = "bus";
  LocalPeers peers(2);
  try {
    Ranks ranks(peers.rank(0), std::make_shared<const Cluster>(spec));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("channel 'bus'"), HasSubstr("ranks 0 and 1")));
  }
}

TEST(RankClocks, the_quickest_round_trip_says_how_far_they_are_apart) {
  const std::vector<RoundTrip> trips = {
      {1000, 51'900, 2000}, {3000, 53'060, 3100}, {5000, 56'000, 5900}};
  EXPECT_EQ(clock_offset(trips), 50'010);
}

}  // namespace
}  // namespace emplace::exec
