// The golden vectors of Placeto's public simulator, found by running it: makespans with the gap
// after the last op, control edges that send the first output, one edge between two ops.
#include "sim/placeto.h"

#include <gtest/gtest.h>

#include "base/error.h"

#include "cluster/presets.h"
#include "graph/graph_builder.h"

#include "sim/simulator.h"

namespace emplace {
namespace {

constexpr Bytes kSent = 760'000;  // 100 us on the bus

// a lasts 100 us, b and c 50 us, a short op 10 us.
class Golden {
 public:
  std::vector<TensorId> op(const std::string& name, DeviceId device,
                           std::vector<TensorId> inputs = {},
                           const std::vector<Bytes>& outputs = {},
                           std::vector<std::string> after = {}) {
    std::vector<TensorSpec> tensors;
    for (const Bytes bytes : outputs) tensors.push_back({.bytes = bytes});
    placement_.push_back(device);
    return builder_.add({.name = name,
                         .type = "compute",
                         .inputs = std::move(inputs),
                         .time_us = {{"k80", {us(name), 0}}},
                         .after = std::move(after)},
                        tensors);
  }

  void run() {
    const auto plain = compile(std::make_shared<const Graph>(std::move(builder_).build()),
                               std::make_shared<const Cluster>(preset_cluster("3xk80-placeto")),
                               CostMode::kMeasured);
    problem_ = placeto_problem(*plain);
    timeline_ = Simulator(problem_).run(placement_, {});
    plain_step_ = Simulator(plain).run(placement_, {}).step;
  }

  Nanoseconds makespan() const { return placeto_makespan(*problem_, placement_, timeline_); }
  std::vector<Bytes> peaks() const { return placeto_peaks(*problem_, placement_, timeline_); }
  Nanoseconds start(OpId op) const { return timeline_.ops[op].start; }
  // Of the graph as it is.
  Nanoseconds plain_step() const { return plain_step_; }

 private:
  static std::int64_t us(const std::string& name) {
    return name == "a" ? 100 : name == "short" ? 10 : 50;
  }

  GraphBuilder builder_{"golden"};
  Placement placement_;
  std::shared_ptr<const Problem> problem_;
  Timeline timeline_;
  Nanoseconds plain_step_ = 0;
};

TEST(Placeto, a_then_b_on_one_device) {
  Golden golden;
  golden.op("b", 0, golden.op("a", 0, {}, {kSent}));
  golden.run();
  EXPECT_EQ(golden.makespan(), 161'400);
  EXPECT_EQ(golden.start(1), 105'700);
  EXPECT_EQ(golden.plain_step(), 155'700);
}

TEST(Placeto, a_then_b_elsewhere) {
  Golden golden;
  golden.op("b", 1, golden.op("a", 0, {}, {kSent}));
  golden.run();
  EXPECT_EQ(golden.makespan(), 255'700);
  EXPECT_EQ(golden.start(1), 200'000);
}

TEST(Placeto, one_tensor_goes_to_two_devices_at_once) {
  Golden golden;
  const auto a = golden.op("a", 0, {}, {kSent});
  golden.op("b", 1, a);
  golden.op("c", 2, a);
  golden.run();
  EXPECT_EQ(golden.makespan(), 255'700);
  EXPECT_EQ(golden.start(1), 200'000);
  EXPECT_EQ(golden.start(2), 200'000);
}

TEST(Placeto, two_tensors_follow_each_other_on_the_bus) {
  Golden golden;
  const auto a = golden.op("a", 0, {}, {kSent, kSent});
  golden.op("b", 1, {a[0]});
  golden.op("c", 2, {a[1]});
  golden.run();
  EXPECT_EQ(golden.makespan(), 380'700);
  EXPECT_EQ(golden.start(1), 200'000);
  EXPECT_EQ(golden.start(2), 325'000);
}

TEST(Placeto, waiting_for_an_op_sends_its_first_output) {
  Golden golden;
  golden.op("a", 0, {}, {kSent});
  golden.op("b", 1, {}, {}, {"a"});
  golden.run();
  EXPECT_EQ(golden.makespan(), 255'700);
  EXPECT_EQ(golden.start(1), 200'000);
  EXPECT_EQ(golden.plain_step(), 150'000);
}

TEST(Placeto, of_two_outputs_that_one_op_reads_only_the_last_is_sent) {
  Golden golden;
  golden.op("b", 1, golden.op("a", 0, {}, {kSent, 7'600}));
  golden.run();
  EXPECT_EQ(golden.makespan(), 156'700);
  EXPECT_EQ(golden.start(1), 101'000);
  EXPECT_EQ(golden.plain_step(), 276'000);  // both are sent
}

TEST(Placeto, the_hold_after_the_last_transfer_counts) {
  Golden golden;
  golden.op("short", 1, golden.op("a", 0, {}, {kSent}));
  golden.run();
  EXPECT_EQ(golden.plain_step(), 210'000);
  EXPECT_EQ(golden.makespan(), 225'000);
}

TEST(Placeto, outputs_stay_until_their_last_reader_ends) {
  Golden golden;
  const auto a = golden.op("a", 0, {}, {1000});
  const auto b = golden.op("b", 0, a, {200});  // 105.7 to 155.7: a's output goes at 154
  golden.op("c", 1, b, {30});                  // read by nothing: there at its start alone
  golden.run();
  EXPECT_EQ(golden.peaks(), (std::vector<Bytes>{1200, 30, 0}));
}

TEST(Placeto, fused_ops_are_refused) {
  GraphBuilder builder("fused");
  builder.add({.name = "a", .type = "Relu", .time_us = {{"k80", {1, 0}}}}, {{.bytes = 4}});
  const auto problem = compile(std::make_shared<const Graph>(std::move(builder).build()),
                               std::make_shared<const Cluster>(preset_cluster("2xk80-placeto")),
                               {.cost = CostMode::kMeasured, .fuse = true});
  EXPECT_THROW(placeto_problem(*problem), Error);
}

}  // namespace
}  // namespace emplace
