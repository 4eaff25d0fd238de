#include "run/measurement.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "sim/simulator.h"

#include "run/execution.h"
#include "support/error_text.h"
#include "support/random_problem.h"
#include "support/shared_core.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TimeSpread, is_the_middle_and_what_half_lie_between) {
  const TimeSpread five = spread_of({50, 10, 40, 20, 30});
  EXPECT_EQ(five.median, 30);
  EXPECT_EQ(five.low, 20);
  EXPECT_EQ(five.high, 40);
  EXPECT_DOUBLE_EQ(five.relative(), 20.0 / 30);
  const TimeSpread one = spread_of({7});
  EXPECT_EQ(one.median, 7);
  EXPECT_EQ(one.low, 7);
  EXPECT_EQ(one.high, 7);
  EXPECT_EQ(one.relative(), 0);
  EXPECT_EQ(spread_of({}).median, 0);
  EXPECT_EQ(spread_of({}).relative(), 0);
}

TEST(TimeSpread, quartiles_lie_between_times_where_the_count_asks_for_it) {
  const TimeSpread seven = spread_of({10, 20, 30, 40, 50, 60, 70});
  EXPECT_EQ(seven.low, 25);
  EXPECT_EQ(seven.median, 40);
  EXPECT_EQ(seven.high, 55);
  const TimeSpread ten = spread_of({0, 100, 200, 300, 400, 500, 600, 700, 800, 900});
  EXPECT_EQ(ten.low, 225);
  EXPECT_EQ(ten.median, 450);
  EXPECT_EQ(ten.high, 675);
  const TimeSpread two = spread_of({10, 30});
  EXPECT_EQ(two.low, 15);
  EXPECT_EQ(two.median, 20);
  EXPECT_EQ(two.high, 25);
}

TEST(TimeSpread, holds_half_of_the_times) {
  for (int count = 4; count <= 40; ++count) {
    std::vector<Nanoseconds> times;
    for (Nanoseconds i = 0; i < count; ++i) times.push_back(1000 * i * i);
    const TimeSpread spread = spread_of(times);
    const auto inside = std::count_if(times.begin(), times.end(), [&](Nanoseconds time) {
      return time >= spread.low && time <= spread.high;
    });
    EXPECT_LE(std::abs(2 * static_cast<int>(inside) - count), 2) << count;
  }
}

TEST(Numbers, have_the_names_that_users_choose_from) {
  EXPECT_EQ(numbers_named("float32"), exec::Numbers::kFloat32);
  EXPECT_EQ(numbers_named("tf32"), exec::Numbers::kTf32);
  EXPECT_EQ(numbers_named("own"), exec::Numbers::kOwn);
  EXPECT_EQ(numbers_named("int8"), std::nullopt);
}

std::shared_ptr<const Graph> relus_of(DType type, int count, std::int64_t elements,
                                      DType first = DType::kUnknown) {
  GraphBuilder builder("relus");
  const TensorSpec spec{.shape = {elements}, .dtype = type};
  TensorSpec few{.shape = {1}, .dtype = first == DType::kUnknown ? type : first};
  builder.add({.name = "few", .type = "input"}, {few});
  TensorId last = builder.add({.name = "x", .type = "input"}, {spec})[0];
  for (int i = 0; i < count; ++i) {
    last =
        builder.add({.name = fmt::format("y{}", i), .type = "Relu", .inputs = {last}}, {spec})[0];
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

TEST(Numbers, that_are_executed_as_others_are_said) {
  using exec::Numbers;
  const auto warnings = [](DType type, Numbers numbers, DType first = DType::kUnknown) {
    return number_warnings(*relus_of(type, 2, 1000, first), numbers);
  };
  EXPECT_THAT(warnings(DType::kFloat32, Numbers::kFloat32), IsEmpty());
  EXPECT_THAT(warnings(DType::kInt64, Numbers::kFloat32), IsEmpty());
  EXPECT_THAT(warnings(DType::kBool, Numbers::kFloat32), IsEmpty());
  EXPECT_THAT(warnings(DType::kFloat64, Numbers::kFloat64), IsEmpty());
  EXPECT_THAT(warnings(DType::kBFloat16, Numbers::kOwn), IsEmpty());
  EXPECT_THAT(warnings(DType::kFloat64, Numbers::kFloat32),
              ElementsAre("numbers of type float64 are executed as float32: times and memory are "
                          "not theirs"));
  EXPECT_THAT(warnings(DType::kFloat16, Numbers::kFloat64),
              ElementsAre(HasSubstr("float16 are executed as float64")));
  EXPECT_THAT(warnings(DType::kUInt8, Numbers::kOwn),
              ElementsAre(HasSubstr("uint8 are executed as int64")));
  EXPECT_THAT(warnings(DType::kFloat32, Numbers::kFloat32, DType::kInt32), IsEmpty())
      << "an integer among thousands of others";
}

TEST(ProgramOrder, is_the_simulator_s_sequence_where_asked) {
  Rng rng(5);
  for (int round = 0; round < 50; ++round) {
    const auto problem = random_problem(rng);
    const Placement placement = random_placement(*problem, rng);
    const Schedule schedule = random_schedule(*problem, rng);
    const exec::ProgramOrder order = order_of(*problem, placement, schedule, /*fixed=*/true);
    const Timeline timeline = Simulator(problem).run(placement, schedule);
    ASSERT_EQ(order.sequence.size(), problem->num_devices());
    std::vector<int> seen(problem->num_ops(), 0);
    for (DeviceId device = 0; device < problem->num_devices(); ++device) {
      Nanoseconds last = 0;
      for (const OpId op : order.sequence[device]) {
        EXPECT_EQ(placement[op], device);
        EXPECT_GE(timeline.ops[op].start, last) << describe(*problem, placement, schedule);
        last = timeline.ops[op].start;
        ++seen[op];
      }
    }
    for (OpId op = 0; op < problem->num_ops(); ++op) {
      const bool executed = !problem->graph().is_source(op) && !problem->graph().is_view(op);
      EXPECT_EQ(seen[op], executed ? 1 : 0);
    }
  }
}

TEST(ProgramOrder, has_priorities_alone_otherwise) {
  Rng rng(6);
  const auto problem = random_problem(rng);
  const Placement placement = random_placement(*problem, rng);
  EXPECT_TRUE(order_of(*problem, placement, {}, false).rank.empty());
  Schedule schedule;
  for (OpId op = 0; op < problem->num_ops(); ++op) schedule.priorities.push_back(op);
  const exec::ProgramOrder order = order_of(*problem, placement, schedule, false);
  EXPECT_TRUE(order.sequence.empty());
  ASSERT_THAT(order.rank, SizeIs(problem->num_ops()));
  EXPECT_EQ(order.rank.back(), 0U) << "of the highest priority";
}

#ifdef EMPLACE_LEARN  // what executes is in the library that links libtorch

std::shared_ptr<const Graph> small_model() {
  return std::make_shared<const Graph>(
      zoo::build_model("gnmt-2:batch=2,hidden=8,sequence=3,vocabulary=11"));
}

// Every other group on the second device.
Placement alternating(const Problem& problem) {
  std::vector<DeviceId> devices(problem.num_groups());
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    devices[group] = static_cast<DeviceId>(group / 4 % 2);
  }
  return expand_groups(problem, devices);
}

TEST(Laboratory, measures_every_op_and_transfer_of_a_step) {
  const auto graph = small_model();
  const auto cluster = shared_core_cluster(2);
  const auto problem = compile(graph, cluster);
  const Placement placement = alternating(*problem);
  int told = 0;
  Laboratory laboratory(cluster, {}, [&] { ++told; });
  EXPECT_THAT(laboratory.warnings(), testing::Contains(HasSubstr("share core")));
  const Measurement found =
      laboratory.measure(graph, placement, {}, {.steps = 3, .warm_up = 2, .seed = 1});
  ASSERT_FALSE(found.failure) << found.failure->text;
  EXPECT_EQ(told, 5);
  EXPECT_THAT(found.steps, SizeIs(3));
  EXPECT_THAT(found.losses, SizeIs(5));
  EXPECT_TRUE(std::isfinite(found.losses.back()));
  EXPECT_THAT(found.op_times, SizeIs(graph->num_ops()));
  EXPECT_THAT(found.temporary, SizeIs(graph->num_ops()));
  EXPECT_THAT(found.memory, SizeIs(2));
  EXPECT_GT(found.memory[1].peak, 0);
  for (OpId op = 0; op < graph->num_ops(); ++op) {
    const bool timed = !graph->is_source(op) && !graph->is_view(op);
    EXPECT_EQ(found.op_times[op] > 0, timed) << graph->op_name(op);
  }
  const Timeline simulated = Simulator(problem).run(placement, {});
  EXPECT_EQ(static_cast<std::int64_t>(found.transfers.size()), simulated.num_transfers);
  const Timeline measured = measured_timeline(*problem, placement, found);
  EXPECT_EQ(measured.step, found.step().median);
  EXPECT_EQ(measured.transfer_bytes, simulated.transfer_bytes);
  EXPECT_EQ(measured.num_transfers, simulated.num_transfers);
}

TEST(Laboratory, computes_the_same_wherever_ops_are) {
  const auto graph = small_model();
  const auto cluster = shared_core_cluster(2);
  const auto problem = compile(graph, cluster);
  Laboratory laboratory(cluster);
  const MeasureSettings settings{.steps = 1, .warm_up = 1, .seed = 3};
  const Measurement alone = laboratory.measure(graph, Placement(graph->num_ops(), 0), {}, settings);
  const Measurement apart = laboratory.measure(graph, alternating(*problem), {}, settings);
  EXPECT_EQ(alone.losses, apart.losses);
  const Measurement other =
      laboratory.measure(graph, alternating(*problem), {}, {.steps = 1, .warm_up = 1, .seed = 4});
  EXPECT_NE(alone.losses, other.losses);
}

TEST(Laboratory, knows_the_bytes_that_were_sent) {
  const auto graph = relus_of(DType::kUInt8, 2, 1000);
  const auto cluster = shared_core_cluster(2);
  Laboratory laboratory(cluster);
  const Placement placement{0, 0, 0, 1};
  const MeasureSettings settings{.steps = 1, .warm_up = 0};
  const Measurement found = laboratory.measure(graph, placement, {}, settings);
  ASSERT_FALSE(found.failure) << found.failure->text;
  ASSERT_THAT(found.transfers, SizeIs(1));
  EXPECT_EQ(found.transfers[0].bytes, 8000);
}

TEST(Laboratory, of_a_long_run_keeps_some_steps_and_all_times) {
  const auto graph = relus_of(DType::kFloat32, 1, 4);
  Laboratory laboratory(shared_core_cluster(1));
  const Placement placement(graph->num_ops(), 0);
  const Measurement found = laboratory.measure(graph, placement, {}, {.steps = 1201, .warm_up = 0});
  ASSERT_FALSE(found.failure) << found.failure->text;
  EXPECT_THAT(found.steps, SizeIs(1201));
  EXPECT_GT(found.op_times.back(), 0);
  EXPECT_THAT(found.typical.ops, SizeIs(graph->num_ops()));
  EXPECT_THAT(found.steps, testing::Contains(found.typical.step));
}

TEST(Laboratory, takes_what_was_measured_for_granted_in_the_oracle) {
  const auto cluster = shared_core_cluster(2);
  const auto problem = compile(small_model(), cluster);
  Laboratory laboratory(cluster);
  const Execution run =
      execute(laboratory, problem, alternating(*problem), {}, {.steps = 3, .warm_up = 1});
  ASSERT_FALSE(run.failed());
  Nanoseconds sum = 0;
  for (const Nanoseconds time : run.measurement.op_times) sum += time;
  EXPECT_GT(run.oracle, 0);
  EXPECT_LE(run.oracle, sum + 1'000'000'000);
  Nanoseconds by_type = 0;
  for (const TypeTimes& type : run.types) by_type += type.measured;
  EXPECT_EQ(by_type, sum);
  EXPECT_TRUE(std::is_sorted(run.types.begin(), run.types.end(),
                             [](const auto& a, const auto& b) { return a.measured > b.measured; }));
  ASSERT_TRUE(run.drift);
  EXPECT_GT(*run.drift, 0);
}

TEST(Laboratory, says_what_runs_out_of_memory_and_goes_on_with_the_next) {
  const auto graph = small_model();
  const auto cluster = shared_core_cluster(1, {}, /*memory=*/20'000);
  Laboratory laboratory(cluster, {.limit_memory = true});
  const Measurement found =
      laboratory.measure(graph, Placement(graph->num_ops(), 0), {}, {.steps = 1, .warm_up = 0});
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->kind, exec::Failure::Kind::kMemory);
  EXPECT_THAT(found.failure->text, AllOf(HasSubstr("op '"), HasSubstr("device 'cpu0'")));
  GraphBuilder builder("tiny");
  const TensorSpec four{.shape = {4}, .dtype = DType::kFloat32};
  const TensorId x = builder.add({.name = "x", .type = "input"}, {four})[0];
  builder.add({.name = "y", .type = "Relu", .inputs = {x}}, {four});
  const auto tiny = std::make_shared<const Graph>(std::move(builder).build());
  const Measurement next =
      laboratory.measure(tiny, Placement(tiny->num_ops(), 0), {}, {.steps = 1, .warm_up = 0});
  EXPECT_FALSE(next.failure) << next.failure->text;
}

// The reference work needs memory as well.
TEST(Laboratory, without_room_for_the_reference_says_nothing_of_drift) {
  const auto tiny = std::make_shared<const Graph>(
      zoo::build_model("family:ptb:batch=2,nodes=4,hidden=8,sequence=3"));
  const auto cluster = shared_core_cluster(1, {}, /*memory=*/Bytes{4} << 20);
  Laboratory laboratory(cluster, {.limit_memory = true});
  const Execution run = execute(laboratory, compile(tiny, cluster), Placement(tiny->num_ops(), 0),
                                {}, {.steps = 1, .warm_up = 0});
  EXPECT_FALSE(run.failed());
  EXPECT_FALSE(run.drift);
}

TEST(Laboratory, ends_with_what_was_timed_when_cancelled) {
  std::atomic<bool> cancelled{false};
  const auto cluster = shared_core_cluster(2);
  const auto problem = compile(small_model(), cluster);
  int steps = 0;
  Laboratory laboratory(cluster, {.cancelled = &cancelled}, [&] {
    if (++steps == 3) cancelled = true;
  });
  const Execution run =
      execute(laboratory, problem, alternating(*problem), {}, {.steps = 1000, .warm_up = 1});
  ASSERT_FALSE(run.failed());
  EXPECT_TRUE(run.measurement.interrupted);
  EXPECT_THAT(run.measurement.steps, SizeIs(2));
  EXPECT_THAT(run.measurement.losses, SizeIs(3));
  EXPECT_FALSE(run.drift);
}

TEST(Laboratory, fails_when_cancelled_before_a_step_was_timed) {
  const std::atomic<bool> cancelled{true};
  const auto cluster = shared_core_cluster(2);
  const auto problem = compile(small_model(), cluster);
  Laboratory laboratory(cluster, {.cancelled = &cancelled});
  const Execution run =
      execute(laboratory, problem, alternating(*problem), {}, {.steps = 1, .warm_up = 0});
  ASSERT_TRUE(run.failed());
  EXPECT_EQ(run.measurement.failure->kind, exec::Failure::Kind::kCancelled);
}

TEST(Laboratory, refuses_devices_that_are_only_simulated) {
  ClusterSpec spec = shared_core_spec(1);
  spec.devices[0].runs_on = "";
  EXPECT_THAT(error_text([&] { Laboratory laboratory(std::make_shared<const Cluster>(spec)); }),
              AllOf(HasSubstr("device 'cpu0'"), HasSubstr("runs_on"), HasSubstr("expected cores")));
}

TEST(Laboratory, refuses_graphs_of_bytes_alone) {
  GraphBuilder builder("bytes");
  builder.add({.name = "x", .type = "input"}, {{.bytes = 4}});
  const auto graph = std::make_shared<const Graph>(std::move(builder).build());
  Laboratory laboratory(shared_core_cluster(1));
  EXPECT_THAT(error_text([&] { laboratory.measure(graph, {0}, {}, {}); }),
              AllOf(HasSubstr("op 'x'"), HasSubstr("expected a shape")));
}

#endif

}  // namespace
}  // namespace emplace
