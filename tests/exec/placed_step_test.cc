// A placed step computes what the step on one device does: the loss, every tensor, every updated
// parameter, bit for bit, for every family of the zoo.
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "cost/problem.h"

#include "exec/equal_bits.h"
#include "exec/small_models.h"
#include "exec/test_machine.h"
#include "zoo/registry.h"

namespace emplace::exec {
namespace {

struct Computed {
  std::int64_t overwritten = 0;  // by ops of the last step
  std::vector<double> losses;
  std::vector<torch::Tensor> results;  // of the last step, by tensor
  std::vector<torch::Tensor> sources;  // after it, by tensor
};

Computed compute(const std::shared_ptr<const Graph>& graph,
                 const std::shared_ptr<const Cluster>& cluster, const Placement& placement,
                 bool watched = true, InPlace in_place = InPlace::kSums) {
  constexpr int kSteps = 2;
  Machine machine(cluster, {});
  StepProgram program(machine, graph, placement, {.seed = 5, .in_place = in_place},
                      training_sources(5));
  Computed computed;
  std::vector<torch::Tensor> results(graph->num_tensors());
  if (watched) program.watch(&results);
  for (int i = 0; i < kSteps; ++i) {
    const StepRecord record = program.step();
    if (record.failure) throw Error(ErrorKind::kInput, record.failure->text);
    computed.losses.push_back(record.loss.value_or(0));
  }
  computed.sources.resize(graph->num_tensors());
  for (TensorId tensor = 0; tensor < graph->num_tensors(); ++tensor) {
    const bool source = graph->is_source(graph->producer(tensor));
    if (source) computed.sources[tensor] = program.source(tensor).clone();
    if (!source && results[tensor].defined()) results[tensor] = results[tensor].clone();
  }
  computed.results = results;
  computed.overwritten = program.num_overwritten();
  return computed;
}

Placement placement_on_all(const Problem& problem, Rng& rng) {
  std::vector<DeviceId> devices;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    devices.push_back(static_cast<DeviceId>(rng.below(problem.num_devices())));
  }
  return expand_groups(problem, devices);
}

class PlacedStep : public ::testing::TestWithParam<const char*> {};

TEST_P(PlacedStep, computes_what_one_device_computes) {
  const auto graph = std::make_shared<const Graph>(zoo::build_model(GetParam()));
  const Computed alone = compute(graph, shared_core_cluster(1), Placement(graph->num_ops(), 0));
  ASSERT_FALSE(alone.losses.empty());
  EXPECT_TRUE(std::isfinite(alone.losses.back())) << alone.losses.back();
  for (int i = 0; i < 6; ++i) {
    const int devices = 2 + i % 3;
    SCOPED_TRACE(fmt::format("placement {} on {} devices", i, devices));
    Rng rng(static_cast<std::uint64_t>(17 + i));
    const auto cluster = shared_core_cluster(devices);
    const auto problem = compile(graph, cluster, CostMode::kAnalytic);
    const Computed placed = compute(graph, cluster, placement_on_all(*problem, rng));
    EXPECT_EQ(placed.losses, alone.losses);
    for (TensorId tensor = 0; tensor < graph->num_tensors(); ++tensor) {
      const OpId op = graph->producer(tensor);
      EXPECT_TRUE(equal_bits(placed.results[tensor], alone.results[tensor]))
          << "op " << graph->op_name(op) << " (" << graph->type(op) << ")";
      EXPECT_TRUE(equal_bits(placed.sources[tensor], alone.sources[tensor]))
          << "source " << graph->op_name(op);
    }
  }
}

// While nobody watches, results take the place of inputs.
TEST_P(PlacedStep, computes_the_same_in_place) {
  const auto graph = std::make_shared<const Graph>(zoo::build_model(GetParam()));
  const auto cluster = shared_core_cluster(2);
  const auto problem = compile(graph, cluster, CostMode::kAnalytic);
  Rng rng(18);
  const Placement placement = placement_on_all(*problem, rng);
  const Computed watched = compute(graph, cluster, placement);
  for (const InPlace mode : {InPlace::kNone, InPlace::kSums, InPlace::kAll}) {
    const Computed unwatched = compute(graph, cluster, placement, false, mode);
    EXPECT_EQ(unwatched.losses, watched.losses);
    for (TensorId tensor = 0; tensor < graph->num_tensors(); ++tensor) {
      EXPECT_TRUE(equal_bits(unwatched.sources[tensor], watched.sources[tensor]))
          << "source " << graph->op_name(graph->producer(tensor)) << ", " << in_place_name(mode);
    }
  }
}

// What the simulator takes for granted is done: a sum that it says is in place is, unless none of
// its terms lies contiguously, as gradients of transposed tensors may not.
TEST_P(PlacedStep, most_sums_are_in_place_where_the_simulator_says_so) {
  const auto graph = std::make_shared<const Graph>(zoo::build_model(GetParam()));
  const auto cluster = shared_core_cluster(1);
  const Placement placement(graph->num_ops(), 0);
  std::int64_t promised = 0;
  for (const TensorId over : find_overwritten(*graph, InPlace::kSums)) {
    promised += over != kNotOverwritten ? 1 : 0;
  }
  const std::int64_t sums = compute(graph, cluster, placement, false, InPlace::kSums).overwritten;
  EXPECT_GE(4 * sums, 3 * promised);
  if (promised > 0) {
    EXPECT_GT(sums, 0);
  }
  EXPECT_GE(compute(graph, cluster, placement, false, InPlace::kAll).overwritten, sums);
  EXPECT_EQ(compute(graph, cluster, placement, false, InPlace::kNone).overwritten, 0);
}

INSTANTIATE_TEST_SUITE_P(All, PlacedStep, ::testing::ValuesIn(kSmallModels),
                         [](const auto& test) { return name_of_model(test.param); });

TEST(PlacedStepLoss, falls_when_steps_are_repeated) {
  for (const char* name : {"resnet-50:batch=2,image=32",
                           "bert-base:batch=2,sequence=4,layers=2,"
                           "hidden=8,heads=2,vocabulary=17,positions=8",
                           "gnmt-2:batch=2,hidden=8,sequence=3,vocabulary=11"}) {
    const auto graph = std::make_shared<const Graph>(zoo::build_model(name));
    Machine machine(shared_core_cluster(1), {});
    StepProgram program(machine, graph, Placement(graph->num_ops(), 0), {.seed = 1},
                        training_sources(1));
    double first = 0;
    double last = 0;
    for (int i = 0; i < 30; ++i) {
      const StepRecord record = program.step();
      ASSERT_FALSE(record.failure) << record.failure->text;
      last = record.loss.value();
      if (i == 0) first = last;
    }
    EXPECT_LT(last, first) << name;
  }
}

}  // namespace
}  // namespace emplace::exec
