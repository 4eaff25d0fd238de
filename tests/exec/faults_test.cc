// Whatever goes wrong in a step, it ends: the op and the device are named, all threads are there
// for the next program, and nothing hangs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "exec/test_machine.h"

namespace emplace::exec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TensorSpec some_floats(std::int64_t count) {
  TensorSpec spec;
  spec.shape = {count};
  spec.dtype = DType::kFloat32;
  return spec;
}

std::shared_ptr<const Graph> fault_graph(Rng& rng, int ops, Placement& placement, int devices) {
  GraphBuilder builder("faults");
  std::vector<TensorId> made = {builder.add({.name = "x", .type = "input"}, {some_floats(64)})[0]};
  for (int i = 0; i < ops; ++i) {
    OpSpec spec;
    spec.name = fmt::format("op{}", i);
    spec.type = "Timed";
    spec.inputs = {made[rng.below(made.size())], made.back()};
    spec.attributes.set("length", static_cast<std::int64_t>(rng.below(30'000)));
    made.push_back(builder.add(spec, {some_floats(256)})[0]);
  }
  for (OpId op = 0; op < builder.num_ops(); ++op) {
    placement.push_back(static_cast<DeviceId>(rng.below(static_cast<std::uint64_t>(devices))));
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

enum class Fault { kThrows, kTorchThrows, kRunsOut, kIsCancelled, kNone };
constexpr int kRealFaults = 3;  // the first

// What the op that fails does.
CompiledOp compile_fault(const CompiledOp& plain, Fault fault, std::atomic<bool>& cancelled) {
  CompiledOp failing = plain;
  failing.run = [plain, fault, &cancelled](OpStep& step) {
    if (fault == Fault::kThrows) throw std::runtime_error("it broke");
    if (fault == Fault::kTorchThrows) torch::ones({2}).add_(torch::ones({3}));
    if (fault == Fault::kRunsOut) torch::empty({1 << 22});
    if (fault == Fault::kIsCancelled) cancelled = true;
    plain.run(step);
  };
  return failing;
}

std::ptrdiff_t count_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

// A thread that was joined is listed for a moment more: the least of half a second, or what is
// `expected` as soon as it is there.
std::ptrdiff_t count_remaining_threads(std::ptrdiff_t expected = 0) {
  constexpr int kLooks = 50;
  std::ptrdiff_t least = count_threads();
  for (int look = 0; look < kLooks && least > expected; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    least = std::min(least, count_threads());
  }
  return least;
}

// One step of a new program, in which the op does that.
void expect_fault(Machine& machine, int devices, Fault fault, Rng& rng,
                  std::atomic<bool>& cancelled) {
  Placement placement;
  const auto graph = fault_graph(rng, 8, placement, devices);
  const auto bad = static_cast<OpId>(1 + rng.below(8));
  cancelled = false;
  StepProgram program(machine, graph, placement, {}, sources_of_ones(),
                      [&](const Graph& of, OpId op, const OpTarget& target) {
                        const CompiledOp plain = compile_waiting_op(of, op, target);
                        return op == bad ? compile_fault(plain, fault, cancelled) : plain;
                      });
  const StepRecord record = program.step();
  if (fault == Fault::kNone) {
    EXPECT_FALSE(record.failure) << record.failure->text;
    return;
  }
  ASSERT_TRUE(record.failure);
  if (fault == Fault::kIsCancelled) {
    EXPECT_EQ(record.failure->kind, Failure::Kind::kCancelled);
    return;
  }
  const char* why = fault == Fault::kThrows        ? "it broke"
                    : fault == Fault::kTorchThrows ? "must match the size"
                                                   : "memory runs out";
  EXPECT_EQ(record.failure->kind,
            fault == Fault::kRunsOut ? Failure::Kind::kMemory : Failure::Kind::kOp);
  EXPECT_THAT(record.failure->text,
              AllOf(HasSubstr(fmt::format("op '{}' (Timed)", graph->op_name(bad))),
                    HasSubstr(fmt::format("device 'cpu{}'", placement[bad])), HasSubstr(why)));
}

// Between them, steps that are cancelled and steps that are fine.
TEST(Faults, a_thousand_steps_that_fail_all_end_and_say_why) {
  Rng rng(3);
  std::atomic<bool> cancelled{false};
  constexpr int kFaults = 1000;
  constexpr int kPerMachine = 50;
  std::unique_ptr<Machine> machine;
  std::ptrdiff_t threads = 0;
  for (int i = 0; i < kFaults; ++i) {
    const int devices = 1 + i / kPerMachine % 4;
    if (i % kPerMachine == 0) {
      machine.reset();  // before the next one counts memory
      if (i == kPerMachine) threads = count_remaining_threads();
      machine =
          std::make_unique<Machine>(shared_core_cluster(devices, {}, /*memory=*/1 << 20),
                                    RuntimeOptions{.cancelled = &cancelled, .limit_memory = true});
    }
    SCOPED_TRACE(i);
    expect_fault(*machine, devices, static_cast<Fault>(i % kRealFaults), rng, cancelled);
    if (i % 4 == 0) expect_fault(*machine, devices, Fault::kIsCancelled, rng, cancelled);
    if (i % 4 == 2) expect_fault(*machine, devices, Fault::kNone, rng, cancelled);
  }
  machine.reset();
  EXPECT_EQ(count_remaining_threads(threads), threads);
}

TEST(Faults, parameters_that_do_not_fit_are_said) {
  GraphBuilder builder("large");
  builder.add({.name = "w", .type = "parameter"}, {some_floats(1 << 20)});
  const auto graph = std::make_shared<const Graph>(std::move(builder).build());
  Machine machine(shared_core_cluster(1, {}, /*memory=*/1 << 20), {.limit_memory = true});
  StepProgram program(machine, graph, {0}, {}, sources_of_ones(), compile_waiting_op);
  const StepRecord record = program.step();
  ASSERT_TRUE(record.failure);
  EXPECT_EQ(record.failure->kind, Failure::Kind::kMemory);
  EXPECT_THAT(record.failure->text, AllOf(HasSubstr("op 'w'"), HasSubstr("device 'cpu0'")));
}

TEST(Faults, a_tensor_that_does_not_fit_where_it_is_sent_is_said) {
  GraphBuilder builder("sent");
  const TensorId x = builder.add({.name = "x", .type = "input"}, {some_floats(4)})[0];
  OpSpec big{.name = "big", .type = "Timed", .inputs = {x}};
  const TensorId y = builder.add(big, {some_floats(1 << 20)})[0];
  builder.add({.name = "reader", .type = "Timed", .inputs = {y}}, {some_floats(1)});
  const auto graph = std::make_shared<const Graph>(std::move(builder).build());
  ClusterSpec spec = shared_core_spec(2);
  spec.devices[1].memory = 1 << 20;
  Machine machine(std::make_shared<const Cluster>(spec), {.limit_memory = true});
  StepProgram program(machine, graph, {0, 0, 1}, {}, sources_of_ones(), compile_waiting_op);
  const StepRecord record = program.step();
  ASSERT_TRUE(record.failure);
  EXPECT_EQ(record.failure->kind, Failure::Kind::kMemory);
  EXPECT_THAT(record.failure->text,
              HasSubstr("the result of op 'big' (Timed) on its way to device 'cpu1': memory"));
}

TEST(Faults, a_device_that_is_nowhere_is_named) {
  ClusterSpec spec;
  spec.name = "only simulated";
  Device device;
  device.name = "gpu7";
  device.kind = "p100";
  device.memory = kUnlimited;
  spec.devices = {device};
  try {
    Machine machine(std::make_shared<const Cluster>(spec), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("device 'gpu7'"), HasSubstr("runs_on")));
  }
}

TEST(Faults, a_link_that_carries_any_number_at_once_is_refused) {
  ClusterSpec spec;
  spec.name = "published";
  spec.devices = {{.name = "a", .kind = "cpu", .memory = kUnlimited, .runs_on = "cores 0"},
                  {.name = "b", .kind = "cpu", .memory = kUnlimited, .runs_on = "cores 0"}};
  spec.links = {{.bandwidth = 1'000'000'000, .channel = "unlimited"}};
  try {
    Machine machine(std::make_shared<const Cluster>(spec), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cluster 'published'"), HasSubstr("a->b"),
                                    HasSubstr("can only be simulated")));
  }
}

std::shared_ptr<const Graph> chain_of(int ops, Nanoseconds length) {
  GraphBuilder builder("chain");
  TensorId last = builder.add({.name = "x", .type = "input"}, {some_floats(64)})[0];
  for (int i = 0; i < ops; ++i) {
    OpSpec spec{.name = fmt::format("op{}", i), .type = "Timed", .inputs = {last}};
    spec.attributes.set("length", length);
    last = builder.add(spec, {some_floats(64)})[0];
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

constexpr Nanoseconds kDeadline = 200'000'000;

TEST(Faults, an_op_that_hangs_is_left_alone_and_the_devices_go_on) {
  // Outlives the test's machine, as the op does.
  const auto released = std::make_shared<std::atomic<bool>>(false);
  const auto graph = chain_of(4, 0);
  const Placement placement{0, 0, 1, 0, 1};
  std::weak_ptr<StepProgram> hanging;
  {
    Machine machine(shared_core_cluster(2), {});
    const auto hangs = [&](const Graph& of, OpId op, const OpTarget& target) {
      const CompiledOp plain = compile_waiting_op(of, op, target);
      if (op != 3) return plain;
      CompiledOp slow = plain;
      slow.run = [released, plain](OpStep& step) {
        while (!*released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        plain.run(step);
      };
      return slow;
    };
    auto program = std::make_shared<StepProgram>(machine, graph, placement, ProgramOptions{},
                                                 sources_of_ones(), hangs);
    program->set_deadline(10 * kDeadline);  // the ops before it end in time on any machine
    hanging = program;
    const StepRecord record = program->step();
    ASSERT_TRUE(record.failure);
    EXPECT_EQ(record.failure->kind, Failure::Kind::kHung);
    EXPECT_THAT(record.failure->text, HasSubstr("op 'op2' (Timed) on device 'cpu0': still runs"));
    EXPECT_TRUE(program->step().failure) << "it cannot go on";
    program.reset();
    EXPECT_FALSE(hanging.expired());
    StepProgram next(machine, graph, placement, {}, sources_of_ones(), compile_waiting_op);
    for (int i = 0; i < 3; ++i) {
      const StepRecord fine = next.step();
      EXPECT_FALSE(fine.failure) << fine.failure->text;
    }
  }
  EXPECT_FALSE(hanging.expired());
  *released = true;
  for (int i = 0; i < 10'000 && !hanging.expired(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(hanging.expired()) << "its thread has ended";
}

TEST(Faults, a_step_that_is_too_slow_ends_between_two_ops) {
  Machine machine(shared_core_cluster(1), {});
  const auto graph = chain_of(100, 20'000'000);
  StepProgram program(machine, graph, Placement(graph->num_ops(), 0), {}, sources_of_ones(),
                      compile_waiting_op);
  program.set_deadline(kDeadline);
  const Nanoseconds start = now();
  const StepRecord record = program.step();
  ASSERT_TRUE(record.failure);
  EXPECT_EQ(record.failure->kind, Failure::Kind::kHung);
  EXPECT_GE(now() - start, kDeadline);
  StepProgram next(machine, chain_of(3, 0), Placement(4, 0), {}, sources_of_ones(),
                   compile_waiting_op);
  next.set_deadline(1'000 * kDeadline);
  EXPECT_FALSE(next.step().failure);
}

// 4 MiB over 100 KB/s are on their way for 42 s, unless the step ends.
class OnSlowLink : public ::testing::Test {
 protected:
  static constexpr OpId kBeside = 3;

  OnSlowLink() : machine_(shared_core_cluster(2, kSlow), {.cancelled = &cancelled_}) {
    GraphBuilder builder("sent");
    const TensorId x = builder.add({.name = "x", .type = "input"}, {some_floats(4)})[0];
    const TensorId y =
        builder.add({.name = "big", .type = "Timed", .inputs = {x}}, {some_floats(1 << 20)})[0];
    builder.add({.name = "reader", .type = "Timed", .inputs = {y}}, {some_floats(1)});
    builder.add({.name = "beside", .type = "Timed", .inputs = {y}}, {some_floats(1)});
    graph_ = std::make_shared<const Graph>(std::move(builder).build());
  }

  // `beside`: what that op does before it waits for 300 ms, on the device that sends.
  Failure step(Nanoseconds deadline, std::function<void()> beside = {}) {
    const auto compile = [&](const Graph& of, OpId op, const OpTarget& target) {
      CompiledOp plain = compile_waiting_op(of, op, target);
      if (op != kBeside || !beside) return plain;
      CompiledOp other = plain;
      other.run = [plain, beside](OpStep& step) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        beside();
        plain.run(step);
      };
      return other;
    };
    const auto program = std::make_shared<StepProgram>(
        machine_, graph_, Placement{0, 0, 1, 0}, ProgramOptions{}, sources_of_ones(), compile);
    program->set_deadline(deadline);
    const Nanoseconds start = now();
    const StepRecord record = program->step();
    EXPECT_LT(now() - start, 5'000'000'000);
    EXPECT_TRUE(record.failure);
    return record.failure.value_or(Failure{});
  }

  std::atomic<bool> cancelled_{false};

 private:
  static constexpr TestLink kSlow{.bandwidth = 100'000, .throttled = true};

  Machine machine_;
  std::shared_ptr<const Graph> graph_;
};

TEST_F(OnSlowLink, a_step_that_is_cancelled_waits_for_nothing) {
  std::thread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled_ = true;
  });
  EXPECT_EQ(step(0).kind, Failure::Kind::kCancelled);
  user.join();
}

TEST_F(OnSlowLink, a_step_that_is_given_up_names_the_tensor) {
  const Failure failure = step(kDeadline);
  EXPECT_EQ(failure.kind, Failure::Kind::kHung);
  EXPECT_EQ(
      failure.text,
      "the result of op 'big' (Timed) on its way to device 'cpu1': is not there 200.0 ms after "
      "the step began");
}

TEST_F(OnSlowLink, an_op_that_fails_elsewhere_ends_the_step) {
  const Failure failure = step(0, [] { throw std::runtime_error("it broke"); });
  EXPECT_EQ(failure.kind, Failure::Kind::kOp);
  EXPECT_THAT(failure.text, HasSubstr("op 'beside' (Timed) on device 'cpu0': it broke"));
}

}  // namespace
}  // namespace emplace::exec
