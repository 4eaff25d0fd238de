// Executed steps keep the simulator's rules: which op a device takes, what a link carries when,
// when memory is free. Ops have known lengths, so that nothing depends on how fast the machine is.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "base/rng.h"

#include "cost/problem.h"

#include "sim/simulator.h"

#include "exec/test_machine.h"

namespace emplace::exec {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

OpSpec timed(std::string name, std::vector<TensorId> inputs, int milliseconds) {
  OpSpec spec;
  spec.name = std::move(name);
  spec.type = "Timed";
  spec.inputs = std::move(inputs);
  spec.attributes.set("length", milliseconds * kMillisecond);
  spec.time_us = {{"cpu", Decimal{milliseconds * 1000, 0}}};
  return spec;
}

TensorSpec floats(std::int64_t count) {
  TensorSpec spec;
  spec.shape = {count};
  spec.dtype = DType::kFloat32;
  return spec;
}

std::vector<OpId> by_start(const std::vector<Interval>& times, const std::vector<OpId>& ops) {
  std::vector<OpId> order = ops;
  std::sort(order.begin(), order.end(),
            [&](OpId a, OpId b) { return times[a].start < times[b].start; });
  return order;
}

// Ops of a device that take time, in the simulated order.
std::vector<OpId> simulated_order(const Problem& problem, const Placement& placement,
                                  const Timeline& timeline, DeviceId device) {
  std::vector<OpId> ops;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const bool real = timeline.ops[op].finish > timeline.ops[op].start;
    if (placement[op] == device && real) ops.push_back(op);
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [&](OpId a, OpId b) { return timeline.ops[a].start < timeline.ops[b].start; });
  return ops;
}

struct Tried {
  std::shared_ptr<const Problem> problem;
  Timeline simulated;
  StepRecord executed;
  std::vector<Transfer> transfers;
  std::vector<MemoryRecord> memory;
};

Tried try_step(GraphBuilder builder, std::shared_ptr<const Cluster> cluster,
               const Placement& placement, const Schedule& schedule = {}, bool fixed = false) {
  Tried tried;
  const auto graph = std::make_shared<const Graph>(std::move(builder).build());
  tried.problem = compile(graph, cluster, CostMode::kMeasured);
  tried.simulated = Simulator(tried.problem).run(placement, schedule);
  Machine machine(cluster, {});
  ProgramOptions options;
  const ReadyOrder order(*tried.problem, schedule);
  options.order.rank.assign(order.rank_of_op().begin(), order.rank_of_op().end());
  if (fixed) {
    for (DeviceId id = 0; id < cluster->num_devices(); ++id) {
      options.order.sequence.push_back(
          simulated_order(*tried.problem, placement, tried.simulated, id));
    }
  }
  StepProgram program(machine, graph, placement, options, sources_of_ones(), compile_waiting_op);
  program.step();
  tried.executed = program.step();
  tried.transfers = program.transfers();
  tried.memory = program.memory();
  return tried;
}

void expect_order(const Tried& tried, const Placement& placement) {
  EXPECT_FALSE(tried.executed.failure) << tried.executed.failure->text;
  for (DeviceId id = 0; id < tried.problem->num_devices(); ++id) {
    const std::vector<OpId> expected =
        simulated_order(*tried.problem, placement, tried.simulated, id);
    EXPECT_EQ(by_start(tried.executed.ops, expected), expected) << "device " << id;
  }
}

// A chain on one device, and side branches that become ready together.
GraphBuilder branches() {
  GraphBuilder builder("branches");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {floats(16)})[0];
  const TensorId root = builder.add(timed("root", {x}, 2), {floats(16)})[0];
  for (int i = 0; i < 6; ++i) {
    builder.add(timed(fmt::format("leaf{}", i), {root}, 3), {floats(16)});
  }
  return builder;
}

TEST(Executor, takes_ready_ops_by_priority) {
  Schedule schedule;
  schedule.priorities = {0, 0, 1, 5, 3, 2, 9, 4};
  const Placement placement(8, 0);
  const Tried tried = try_step(branches(), shared_core_cluster(1), placement, schedule);
  expect_order(tried, placement);
  EXPECT_EQ(by_start(tried.executed.ops, {2, 3, 4, 5, 6, 7}),
            (std::vector<OpId>{6, 3, 7, 4, 5, 2}));
}

TEST(Executor, takes_ready_ops_as_they_come_without_priorities) {
  const Placement placement(8, 0);
  expect_order(try_step(branches(), shared_core_cluster(1), placement), placement);
}

TEST(Executor, lasts_at_least_as_long_as_simulated) {
  const Placement placement(8, 0);
  const Tried tried = try_step(branches(), shared_core_cluster(1), placement);
  EXPECT_EQ(tried.simulated.step, 20 * kMillisecond);
  EXPECT_GE(tried.executed.step, tried.simulated.step);
}

// Two tensors over one link, which carries one at a time: 4 MB at 200 MB/s take 20 ms each.
TEST(Executor, a_throttled_link_carries_one_tensor_at_a_time) {
  GraphBuilder builder("sends");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {floats(16)})[0];
  const auto both = builder.add(timed("both", {x}, 1), {floats(1'000'000), floats(1'000'000)});
  builder.add(timed("first", {both[0]}, 1), {floats(1)});
  builder.add(timed("second", {both[1]}, 1), {floats(1)});
  const Placement placement{0, 0, 1, 1};
  const auto cluster =
      shared_core_cluster(2, {.bandwidth = 200'000'000, .latency = 1000, .throttled = true});
  const Tried tried = try_step(std::move(builder), cluster, placement);
  expect_order(tried, placement);
  ASSERT_EQ(tried.executed.transfers.size(), 2U);
  const Interval& first = tried.executed.transfers[0];
  const Interval& second = tried.executed.transfers[1];
  EXPECT_GE(first.length(), 20 * kMillisecond);
  EXPECT_GE(second.start, first.end);
  EXPECT_GE(second.length(), 20 * kMillisecond);
  EXPECT_GE(tried.executed.ops[3].start, second.end);
  EXPECT_GE(tried.executed.step, tried.simulated.step);
}

// What follows from the first tensor keeps the thread that carries them for a while.
TEST(Executor, a_throttled_link_is_not_slower_where_its_thread_is_late) {
  GraphBuilder builder("late");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {floats(16)})[0];
  const auto both = builder.add(timed("both", {x}, 1), {floats(250'000), floats(1'000'000)});
  OpSpec view = timed("view", {both[0]}, 10);
  view.view = true;
  view.time_us.clear();
  builder.add(view, {floats(250'000)});
  builder.add(timed("second", {both[1]}, 1), {floats(1)});
  const Placement placement{0, 0, 1, 1};
  const auto cluster =
      shared_core_cluster(2, {.bandwidth = 200'000'000, .latency = 1000, .throttled = true});
  const Tried tried = try_step(std::move(builder), cluster, placement);
  ASSERT_FALSE(tried.executed.failure) << tried.executed.failure->text;
  ASSERT_EQ(tried.executed.transfers.size(), 2U);
  const Interval& first = tried.executed.transfers[0];
  const Interval& second = tried.executed.transfers[1];
  EXPECT_EQ(second.start, first.end);
  EXPECT_GE(second.length(), 20 * kMillisecond);
}

TEST(Executor, an_op_waits_for_those_it_comes_after) {
  GraphBuilder builder("after");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {floats(16)})[0];
  builder.add(timed("slow", {x}, 8), {floats(1)});
  OpSpec later = timed("later", {x}, 1);
  later.after = {"slow"};
  builder.add(later, {floats(1)});
  const Tried tried = try_step(std::move(builder), shared_core_cluster(2), {0, 0, 1});
  EXPECT_GE(tried.executed.ops[2].start, tried.executed.ops[1].end);
}

TEST(Executor, an_update_waits_for_whatever_reads_its_parameter) {
  GraphBuilder builder("update");
  const TensorId w = builder.add({.name = "w", .type = "parameter"}, {floats(16)})[0];
  OpSpec gradient = timed("gradient", {w}, 1);
  gradient.phase = Phase::kBackward;
  const TensorId dw = builder.add(gradient, {floats(16)})[0];
  OpSpec reader = timed("reader", {w}, 10);
  reader.phase = Phase::kBackward;
  builder.add(reader, {floats(16)});
  OpSpec update = timed("update", {w, dw}, 1);
  update.phase = Phase::kUpdate;
  builder.add(update, {});
  const Tried tried = try_step(std::move(builder), shared_core_cluster(2), {0, 0, 1, 0});
  EXPECT_GE(tried.executed.ops[3].start, tried.executed.ops[2].end);
  EXPECT_GE(tried.simulated.ops[3].start, tried.simulated.ops[2].finish);
}

// Random graphs with long enough ops that noise does not turn their order around: in the simulated
// sequence, everything comes as it should, and each device's memory peaks where it should.
GraphBuilder random_graph(Rng& rng, int ops) {
  GraphBuilder builder("random");
  std::vector<TensorId> made = {builder.add({.name = "x", .type = "input"}, {floats(1024)})[0]};
  made.push_back(builder.add({.name = "w", .type = "parameter"}, {floats(50'000)})[0]);
  for (int i = 0; i < ops; ++i) {
    std::vector<TensorId> inputs = {made[rng.below(made.size())]};
    if (rng.below(2) == 0) inputs.push_back(made[rng.below(made.size())]);
    OpSpec spec = timed(fmt::format("op{}", i), inputs, 1 + static_cast<int>(rng.below(3)));
    made.push_back(builder.add(spec, {floats(10'000 + static_cast<int>(rng.below(90'000)))})[0]);
  }
  return builder;
}

TEST(Executor, follows_the_simulated_sequence_where_asked) {
  Rng rng(7);
  for (int round = 0; round < 5; ++round) {
    GraphBuilder builder = random_graph(rng, 20);
    Placement placement;
    for (OpId op = 0; op < builder.num_ops(); ++op) {
      placement.push_back(static_cast<DeviceId>(rng.below(3)));
    }
    const Tried tried =
        try_step(std::move(builder), shared_core_cluster(3), placement, {}, /*fixed=*/true);
    expect_order(tried, placement);
    const Graph& graph = tried.problem->graph();
    for (OpId op = 0; op < graph.num_ops(); ++op) {
      for (const TensorId tensor : graph.inputs(op)) {
        const OpId producer = graph.producer(tensor);
        EXPECT_GE(tried.executed.ops[op].start, tried.executed.ops[producer].end);
      }
    }
  }
}

TEST(Executor, one_device_holds_as_much_memory_as_simulated) {
  Rng rng(11);
  for (int round = 0; round < 5; ++round) {
    GraphBuilder builder = random_graph(rng, 15);
    const Placement placement(builder.num_ops(), 0);
    const Tried tried = try_step(std::move(builder), shared_core_cluster(1), placement);
    // Inputs stay for the next step, where the simulator gives them up after the last reader.
    const Bytes inputs = 1024 * 4;
    EXPECT_GE(tried.memory[0].peak, tried.simulated.devices[0].peak);
    EXPECT_LE(tried.memory[0].peak, tried.simulated.devices[0].peak + inputs);
  }
}

TEST(Executor, a_sent_tensor_counts_where_it_arrives) {
  GraphBuilder builder("sent");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {floats(16)})[0];
  const TensorId big = builder.add(timed("big", {x}, 1), {floats(1'000'000)})[0];
  builder.add(timed("reader", {big}, 1), {floats(1)});
  const Tried tried = try_step(std::move(builder), shared_core_cluster(2), {0, 0, 1});
  for (const MemoryRecord& memory : tried.memory) {
    EXPECT_GE(memory.peak, 4'000'000);
    EXPECT_LE(memory.peak, 4'001'000);
  }
}

TEST(Executor, a_view_takes_no_time_and_no_memory) {
  GraphBuilder builder("view");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {floats(16)})[0];
  const TensorId big = builder.add(timed("big", {x}, 1), {floats(1'000'000)})[0];
  OpSpec view = timed("view", {big}, 0);
  view.view = true;
  const TensorId seen = builder.add(view, {floats(1'000'000)})[0];
  builder.add(timed("reader", {seen}, 1), {floats(1)});
  const Tried tried = try_step(std::move(builder), shared_core_cluster(1), {0, 0, 0, 0});
  EXPECT_EQ(tried.executed.ops[2].length(), 0);
  EXPECT_LE(tried.memory[0].peak, 4'001'000);
}

}  // namespace
}  // namespace emplace::exec
