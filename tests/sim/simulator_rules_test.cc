// The rules and worked examples of docs/simulator.md one by one, with times found by hand.
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "sim/simulator.h"

#include "support/tiny_graphs.h"

namespace emplace {
namespace {

constexpr Nanoseconds kUs = 1000;

// Devices of one kind; every time is in microseconds and every link carries a byte a nanosecond
// unless a test says otherwise.
class Step {
 public:
  explicit Step(int devices = 3) {
    cluster_.name = "rules";
    DeviceKind kind;
    kind.name = "k";
    kind.peak_flops = {{"float32", 1e12}};
    kind.memory_bandwidth = 1e11;
    cluster_.kinds = {kind};
    for (int i = 0; i < devices; ++i) {
      Device device;
      device.name = "d" + std::to_string(i);
      device.kind = "k";
      device.memory = kUnlimited;
      cluster_.devices.push_back(device);
    }
    LinkRule link;
    link.bandwidth = 1'000'000'000;
    cluster_.links = {link};
  }

  Device& device(std::size_t i) { return cluster_.devices[i]; }
  LinkRule& link() { return cluster_.links[0]; }

  // An op on `device` and the tensors of these sizes that it writes.
  std::vector<TensorId> op(const std::string& name, DeviceId device, std::int64_t us,
                           std::vector<TensorId> inputs, const std::vector<Bytes>& outputs,
                           OpSpec extra = {}) {
    extra.name = name;
    if (extra.type.empty()) extra.type = "compute";
    extra.inputs = std::move(inputs);
    extra.time_us = {{"k", {us, 0}}};
    std::vector<TensorSpec> tensors;
    for (const Bytes bytes : outputs) tensors.push_back({.bytes = bytes});
    placement_.push_back(device);
    priorities_.push_back(0);
    ids_[name] = builder_.num_ops();
    return builder_.add(std::move(extra), tensors);
  }

  void prioritise(const std::string& name, std::int64_t priority) {
    priorities_[ids_.at(name)] = priority;
    given_ = true;
  }

  const Timeline& run(InPlace in_place = InPlace::kSums) {
    const auto problem = compile(std::make_shared<const Graph>(std::move(builder_).build()),
                                 std::make_shared<const Cluster>(cluster_),
                                 CompileOptions{.cost = CostMode::kMeasured, .in_place = in_place});
    check_placement(*problem, placement_);
    Schedule schedule;
    if (given_) schedule.priorities = priorities_;
    timeline_ = Simulator(problem).run(placement_, schedule);
    return timeline_;
  }

  Nanoseconds start(const std::string& name) const { return timeline_.ops[ids_.at(name)].start; }
  Bytes peak(std::size_t device) const { return timeline_.devices[device].peak; }

 private:
  ClusterSpec cluster_;
  GraphBuilder builder_{"rules"};
  std::map<std::string, OpId> ids_;
  Placement placement_;
  std::vector<std::int64_t> priorities_;
  bool given_ = false;
  Timeline timeline_;
};

OpSpec typed(const std::string& type) {
  OpSpec spec;
  spec.type = type;
  return spec;
}

OpSpec a_view() {
  OpSpec spec;
  spec.view = true;
  return spec;
}

OpSpec after(const std::string& name) {
  OpSpec spec;
  spec.after = {name};
  return spec;
}

Step worked_example() {
  Step step;
  step.link().bandwidth = 7'600'000'000;
  step.link().hold = 25 * kUs;
  step.link().channel = "out";
  step.link().multicast = true;
  for (std::size_t i = 0; i < 3; ++i) step.device(i).gap = 5'700;
  return step;
}

TEST(WorkedExamples, a_then_b_on_one_device) {
  Step step = worked_example();
  const auto a = step.op("a", 0, 100, {}, {760'000});
  step.op("b", 0, 50, a, {});
  EXPECT_EQ(step.run().step, 155'700);
  EXPECT_EQ(step.start("b"), 105'700);
}

TEST(WorkedExamples, a_then_b_elsewhere) {
  Step step = worked_example();
  const auto a = step.op("a", 0, 100, {}, {760'000});
  step.op("b", 1, 50, a, {});
  EXPECT_EQ(step.run().step, 250'000);
  EXPECT_EQ(step.start("b"), 200'000);
}

TEST(WorkedExamples, one_tensor_to_two_devices) {
  Step step = worked_example();
  const auto a = step.op("a", 0, 100, {}, {760'000});
  step.op("b", 1, 50, a, {});
  step.op("c", 2, 50, a, {});
  EXPECT_EQ(step.run().step, 250'000);
  EXPECT_EQ(step.start("b"), 200'000);
  EXPECT_EQ(step.start("c"), 200'000);
}

TEST(WorkedExamples, two_tensors_to_two_devices) {
  Step step = worked_example();
  const auto a = step.op("a", 0, 100, {}, {760'000, 760'000});
  step.op("b", 1, 50, {a[0]}, {});
  step.op("c", 2, 50, {a[1]}, {});
  EXPECT_EQ(step.run().step, 375'000);
  EXPECT_EQ(step.start("b"), 200'000);
  EXPECT_EQ(step.start("c"), 325'000);
}

TEST(SimulatorRules, control_dependencies_cost_nothing_across_devices) {
  Step step;
  step.link().latency = 70 * kUs;
  step.op("a", 0, 10, {}, {1000});
  step.op("b", 1, 10, {}, {}, after("a"));
  const Timeline& timeline = step.run();
  EXPECT_EQ(timeline.step, 20 * kUs);
  EXPECT_TRUE(timeline.transfers.empty());
}

TEST(SimulatorRules, instant_ops_do_not_wait_for_a_busy_device) {
  Step step;
  const auto a = step.op("a", 0, 10, {}, {0});
  step.op("long", 1, 100, {}, {});
  const auto z = step.op("z", 1, 0, a, {0});
  step.op("c", 2, 10, z, {});
  step.run();
  EXPECT_EQ(step.start("z"), 10 * kUs);
  EXPECT_EQ(step.start("c"), 10 * kUs);
}

TEST(SimulatorRules, the_gap_follows_only_ops_that_last) {
  Step step;
  step.device(0).gap = 7 * kUs;
  const auto z = step.op("z", 0, 0, {}, {0});
  const auto a = step.op("a", 0, 10, z, {0});
  step.op("b", 0, 10, a, {});
  step.run();
  EXPECT_EQ(step.start("a"), 0);
  EXPECT_EQ(step.start("b"), 17 * kUs);
}

TEST(SimulatorRules, fifo_takes_the_earliest_ready_then_the_lowest_index) {
  Step step;
  const auto late = step.op("late", 1, 20, {}, {0});
  const auto early = step.op("early", 2, 10, {}, {0});
  step.op("busy", 0, 30, {}, {});
  step.op("after_late", 0, 5, late, {});
  step.op("after_early", 0, 5, early, {});
  step.op("after_early_too", 0, 5, early, {});
  step.run();
  EXPECT_EQ(step.start("after_early"), 30 * kUs);
  EXPECT_EQ(step.start("after_early_too"), 35 * kUs);
  EXPECT_EQ(step.start("after_late"), 40 * kUs);
}

TEST(SimulatorRules, priorities_beat_readiness_even_at_the_ends_of_their_range) {
  Step step;
  step.op("low", 0, 1, {}, {});
  step.op("middle", 0, 1, {}, {});
  step.op("high", 0, 1, {}, {});
  step.prioritise("low", std::numeric_limits<std::int64_t>::min());
  step.prioritise("high", std::numeric_limits<std::int64_t>::max());
  step.run();
  EXPECT_EQ(step.start("high"), 0);
  EXPECT_EQ(step.start("middle"), 1 * kUs);
  EXPECT_EQ(step.start("low"), 2 * kUs);
}

TEST(SimulatorRules, a_device_chooses_only_after_all_that_ends_at_that_instant_is_followed_up) {
  // At 10 us the device gets free, "first" is waiting, and a tensor brings what should go before.
  Step step;
  step.op("busy", 0, 10, {}, {});
  step.op("first", 0, 5, {}, {});
  const auto far = step.op("far", 1, 10, {}, {0});
  const auto z = step.op("z", 2, 0, far, {0});
  step.op("urgent", 0, 5, z, {});
  step.prioritise("busy", 9);
  step.prioritise("urgent", 5);
  step.run();
  EXPECT_EQ(step.start("urgent"), 10 * kUs);
  EXPECT_EQ(step.start("first"), 15 * kUs);
}

TEST(SimulatorRules, a_tensor_is_sent_once_to_a_device_with_many_readers) {
  Step step;
  const auto a = step.op("a", 0, 10, {}, {5000});
  step.op("b", 1, 1, {a[0], a[0]}, {});
  step.op("c", 1, 1, a, {});
  const Timeline& timeline = step.run();
  EXPECT_EQ(timeline.num_transfers, 1);
  EXPECT_EQ(timeline.transfer_bytes, 5000);
  EXPECT_EQ(timeline.step, 17 * kUs);
}

TEST(SimulatorRules, a_multicast_lasts_as_its_longest_and_others_go_one_by_one) {
  for (const bool multicast : {true, false}) {
    Step step;
    step.link().channel = "out";
    step.link().multicast = multicast;
    step.device(0).gap = 0;
    const auto a = step.op("a", 0, 10, {}, {5000});
    step.op("b", 1, 1, a, {});
    step.op("c", 2, 1, a, {});
    const Timeline& timeline = step.run();
    EXPECT_EQ(timeline.num_transfers, multicast ? 1 : 2);
    EXPECT_EQ(timeline.transfers.size(), 2U);
    EXPECT_EQ(step.start("b"), 15 * kUs);
    EXPECT_EQ(step.start("c"), multicast ? 15 * kUs : 20 * kUs);
  }
}

TEST(SimulatorRules, transfers_pass_each_other_where_the_channel_is_unlimited) {
  Step step;
  step.link().channel = "unlimited";
  step.link().latency = 2 * kUs;
  const auto a = step.op("a", 0, 10, {}, {5000, 3000});
  const auto b = step.op("b", 0, 1, {}, {1000});
  step.op("long", 1, 1, {a[0]}, {});
  step.op("short", 1, 1, {a[1]}, {});
  step.op("elsewhere", 2, 1, {a[0]}, {});
  step.op("later", 1, 1, b, {});
  const Timeline& timeline = step.run();
  EXPECT_EQ(step.start("long"), 17 * kUs);
  EXPECT_EQ(step.start("short"), 15 * kUs);
  EXPECT_EQ(step.start("elsewhere"), 17 * kUs);
  EXPECT_EQ(step.start("later"), 14 * kUs);
  EXPECT_EQ(timeline.channels[0].busy, 15 * kUs);
  for (const Transfer& transfer : timeline.transfers) EXPECT_EQ(transfer.queued, transfer.start);
}

TEST(SimulatorRules, transfers_queue_by_time_then_tensor_whatever_the_priorities) {
  Step step;
  step.link().channel = "out";
  const auto a = step.op("a", 0, 10, {}, {5000, 5000});
  step.op("second", 2, 1, {a[1]}, {});
  step.op("first", 1, 1, {a[0]}, {});
  step.prioritise("second", 100);
  step.run();
  EXPECT_EQ(step.start("first"), 15 * kUs);
  EXPECT_EQ(step.start("second"), 20 * kUs);
}

TEST(SimulatorRules, a_transfer_of_no_length_passes_a_busy_channel) {
  Step step;
  step.link().channel = "out";
  step.link().hold = 50 * kUs;
  const auto a = step.op("a", 0, 10, {}, {5000, 0});
  step.op("b", 1, 1, {a[0]}, {});
  step.op("c", 2, 1, {a[1]}, {});
  step.run();
  EXPECT_EQ(step.start("c"), 10 * kUs);
}

TEST(SimulatorMemory, releases_come_before_allocations) {
  Step step;
  const auto a = step.op("a", 0, 10, {}, {100});
  step.op("b", 0, 10, a, {});  // frees a's tensor at 20 us, when c starts
  step.op("c", 0, 10, {}, {100}, after("b"));
  step.run();
  EXPECT_EQ(step.peak(0), 100);
}

TEST(SimulatorMemory, a_tensor_that_nobody_reads_lives_while_it_is_made) {
  Step step;
  step.op("a", 0, 10, {}, {100});
  step.op("instant", 0, 0, {}, {1000});
  step.op("b", 0, 10, {}, {100});
  step.run();
  EXPECT_EQ(step.peak(0), 100);
}

TEST(SimulatorMemory, parameters_and_persistent_bytes_stay_for_the_whole_step) {
  Step step;
  OpSpec state = typed("compute");
  state.persistent_bytes = 7;
  state.temp_bytes = 3;
  step.op("w", 0, 0, {}, {100}, typed("parameter"));
  step.op("unread", 0, 0, {}, {10}, typed("buffer"));
  step.op("x", 0, 0, {}, {1000}, typed("input"));
  step.op("a", 0, 10, {}, {}, state);
  step.run();
  EXPECT_EQ(step.peak(0), 100 + 10 + 7 + 3);
}

TEST(SimulatorMemory, a_copy_lives_from_its_transfers_start_to_its_last_reader) {
  Step step;
  step.link().channel = "out";
  const auto a = step.op("a", 0, 10, {}, {5000, 5000});
  step.op("b", 1, 5, {a[0]}, {});  // 15 to 20 us, while the second copy comes: 15 to 20 us
  step.op("c", 1, 1, {a[1]}, {});
  step.run();
  EXPECT_EQ(step.peak(1), 10'000);
  EXPECT_EQ(step.peak(0), 10'000);
}

TEST(SimulatorMemory, a_view_keeps_what_it_shows_alive_and_takes_nothing) {
  Step step;
  const auto a = step.op("a", 0, 10, {}, {100});
  const auto v = step.op("v", 0, 0, a, {40, 60}, a_view());
  const auto w = step.op("w", 0, 0, {v[0]}, {20}, a_view());
  step.op("b", 0, 10, {}, {1}, after("a"));
  step.op("c", 0, 10, w, {1000}, after("b"));
  step.run();
  EXPECT_EQ(step.peak(0), 1100);
}

TEST(SimulatorMemory, a_view_that_is_sent_occupies_its_own_size_there) {
  Step step;
  const auto a = step.op("a", 0, 10, {}, {100});
  const auto v = step.op("v", 0, 0, a, {40}, a_view());
  step.op("b", 1, 10, v, {});
  step.run();
  EXPECT_EQ(step.peak(0), 100);
  EXPECT_EQ(step.peak(1), 40);
}

OpSpec gradient_sum() {
  OpSpec spec;
  spec.type = "Add";
  spec.phase = Phase::kBackward;
  return spec;
}

TEST(SimulatorMemory, a_sum_of_gradients_takes_the_place_of_one_of_them) {
  for (const InPlace mode : {InPlace::kNone, InPlace::kSums, InPlace::kAll}) {
    Step step;
    const auto a = step.op("a", 0, 10, {}, {100});
    const auto b = step.op("b", 0, 10, {}, {100});
    const auto sum = step.op("sum", 0, 10, {a[0], b[0]}, {100}, gradient_sum());
    step.op("c", 0, 10, sum, {});
    step.run(mode);
    EXPECT_EQ(step.peak(0), mode == InPlace::kNone ? 300 : 200);
  }
}

TEST(SimulatorMemory, where_a_term_was_sent_its_copy_is_written_over) {
  Step step;
  const auto a = step.op("a", 0, 10, {}, {100});
  const auto b = step.op("b", 1, 10, {}, {100});
  const auto sum = step.op("sum", 1, 10, {a[0], b[0]}, {100}, gradient_sum());
  step.op("c", 1, 10, sum, {});
  step.run();
  EXPECT_EQ(step.peak(0), 100);
  EXPECT_EQ(step.peak(1), 200);
}

TEST(SimulatorMemory, elementwise_ops_write_over_what_dies_if_all_may) {
  for (const InPlace mode : {InPlace::kSums, InPlace::kAll}) {
    Step step;
    const auto a = step.op("a", 0, 10, {}, {100});
    const auto b = step.op("b", 0, 10, a, {100}, typed("Relu"));
    const auto c = step.op("c", 0, 10, b, {100}, typed("Tanh"));
    step.op("d", 0, 10, {b[0], c[0]}, {});
    step.run(mode);
    EXPECT_EQ(step.peak(0), 200) << "b has two readers";
    Step chain;
    const auto x = chain.op("x", 0, 10, {}, {100});
    const auto y = chain.op("y", 0, 10, x, {100}, typed("Relu"));
    chain.op("z", 0, 10, y, {100}, typed("Tanh"));
    chain.run(mode);
    EXPECT_EQ(chain.peak(0), mode == InPlace::kAll ? 100 : 200);
  }
}

TEST(SimulatorMemory, fits_when_every_peak_is_within_capacity) {
  for (const Bytes capacity : {99, 100}) {
    Step step;
    step.device(0).memory = capacity;
    step.op("a", 0, 10, {}, {100});
    EXPECT_EQ(step.run().fits(), capacity == 100);
  }
}

}  // namespace
}  // namespace emplace
