// Small whole models, forward and backward, as every method divides them: each tensor that the
// workers keep is what the model computes undivided.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tensor/decompose.h"
#include "tensor/methods/all.h"
#include "tensor/topology.h"

#include "exec/partition_check.h"
#include "exec/sources.h"
#include "io/readers.h"

namespace emplace {
namespace {

constexpr const char* kModels[] = {
    // Convolutions, with normalised batches and residual connections and without; recurrence;
    // attention.
    "zoo:resnet-50:batch=4,image=32,classes=12",
    "zoo:cifar-10-cnn:batch=6",
    "zoo:stacked-rnn:layers=2,sequence=3,hidden=12,input=8,classes=10,batch=6",
    "zoo:bert:layers=1,hidden=16,heads=4,sequence=6,batch=4,vocabulary=20",
    "zoo:gpt2:layers=1,hidden=16,heads=4,sequence=6,batch=4,vocabulary=20,attention=fused",
};

// Parts of weights also change as the whole does.
const exec::InterpretOptions kWithUpdates{.updates = true};

std::shared_ptr<const Cluster> cluster_of(int devices) {
  ClusterSpec spec;
  spec.name = "equal";
  spec.devices.clear();
  for (int i = 0; i < devices; ++i) {
    spec.devices.push_back({.name = fmt::format("gpu{}", i), .kind = "v100", .memory = 1LL << 34});
  }
  spec.links.push_back({.bandwidth = 10'000'000'000, .latency = 5000});
  return std::make_shared<const Cluster>(std::move(spec));
}

// Searches that do not end by themselves may look at a few plans.
Plan find_plan(const std::string& method, const PartitionInput& input,
               const std::shared_ptr<const Problem>& problem, const WorkerDevices& on) {
  PartitionContext context(input, problem, on);
  Budget budget;
  budget.evaluations = 10;
  return all_partition_methods().make(MethodSpec::parse(method))->find(context, budget, Rng(1));
}

class PartitionedModel : public ::testing::TestWithParam<const char*> {};

TEST_P(PartitionedModel, computes_the_same) {
  const Model model = read_model(GetParam());
  const auto graph = std::make_shared<const Graph>(decompose(*model.graph));
  const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
  const auto values = exec::interpret(*graph, sources, kWithUpdates);
  const PartitionInput input(*graph);
  for (const int count : {2, 3, 4, 6, 8}) {
    const auto cluster = cluster_of(count);
    const auto problem = compile(graph, cluster);
    const WorkerDevices on = workers_on(*problem);
    for (const MethodInfo* method : all_partition_methods().list()) {
      // Deep models take long; what is left out differs by the cuts that it chooses alone.
      const bool published = method->key == "tofu" || method->key == "data-parallel";
      const bool deep = graph->num_ops() > 1000;
      if (deep && (!published || count == 2 || count == 4 || count == 6)) continue;
      SCOPED_TRACE(fmt::format("{} on {}", method->key, count));
      const Plan plan = find_plan(method->key, input, problem, on);
      if (!expect_same(*graph, input.descriptions, plan, sources, values, kWithUpdates)) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PartitionedModel, ::testing::ValuesIn(kModels));

TEST(PartitionedModel, begins_training_with_parts_of_what_the_whole_begins_with) {
  const Model model = read_model(kModels[3]);
  const auto graph = std::make_shared<const Graph>(decompose(*model.graph));
  const auto problem = compile(graph, cluster_of(4));
  const WorkerDevices on = workers_on(*problem);
  const PartitionInput input(*graph);
  const Plan plan = find_plan("tofu", input, problem, on);
  const Graph parts =
      lower(*graph, input.descriptions, plan, {"gpu0", "gpu1", "gpu2", "gpu3"}).graph;
  const exec::SourceValue sources = exec::training_sources(9);
  const exec::SourceValue expected = parts_of(*graph, sources);
  for (OpId op = 0; op < parts.num_ops(); ++op) {
    if (!parts.is_source(op)) continue;
    EXPECT_TRUE(at::equal(sources(parts, op, 0), expected(parts, op, 0))) << parts.op_name(op);
  }
}

// Weights whole, state in parts, gradients either way: Adam's weights and moments are what they are
// undivided, on every worker.
TEST(PartitionedModel, changes_weights_everywhere_though_updates_are_in_parts) {
  const Model model = read_model(std::string(kModels[3]) + ",optimizer=adam");
  const auto graph = std::make_shared<const Graph>(decompose(*model.graph));
  const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
  const auto values = exec::interpret(*graph, sources, kWithUpdates);
  const PartitionInput input(*graph);
  for (const int count : {2, 3, 8}) {
    const auto problem = compile(graph, cluster_of(count));
    const WorkerDevices on = workers_on(*problem);
    for (const char* method : {"zero", "zero(gradients=true)"}) {
      SCOPED_TRACE(fmt::format("{} on {}", method, count));
      const Plan plan = find_plan(method, input, problem, on);
      int in_parts = 0;
      for (TensorId tensor = 0; tensor < graph->num_tensors(); ++tensor) {
        const OpRole role = graph->role(graph->producer(tensor));
        const bool cut = std::any_of(plan.tensors[tensor].begin(), plan.tensors[tensor].end(),
                                     [](std::int8_t dimension) { return dimension != kUncut; });
        if (role == OpRole::kParameter) {
          EXPECT_FALSE(cut);
        }
        if (role == OpRole::kBuffer && cut) ++in_parts;
      }
      EXPECT_GT(in_parts, 20);
      if (!expect_same(*graph, input.descriptions, plan, sources, values, kWithUpdates)) return;
    }
  }
}

// Where weights have fewer elements than there are devices, updates are divided on some levels
// only.
TEST(PartitionedModel, computes_the_same_with_few_classes) {
  const Model model = read_model(
      "zoo:stacked-rnn:layers=1,hidden=10,input=3,sequence=2,batch=16,classes=2,optimizer=adam");
  const auto graph = std::make_shared<const Graph>(decompose(*model.graph));
  const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
  const auto values = exec::interpret(*graph, sources, kWithUpdates);
  const PartitionInput input(*graph);
  for (const int count : {4, 12}) {
    const auto problem = compile(graph, cluster_of(count));
    const WorkerDevices on = workers_on(*problem);
    for (const char* method : {"data-parallel", "fsdp", "zero", "search"}) {
      SCOPED_TRACE(fmt::format("{} on {}", method, count));
      const Plan plan = find_plan(method, input, problem, on);
      if (!expect_same(*graph, input.descriptions, plan, sources, values, kWithUpdates)) return;
    }
  }
}

// Parts of unequal size, on devices of unequal speed.
TEST(PartitionedModel, computes_the_same_on_unequal_devices) {
  const Model model = read_model(kModels[1]);
  const auto graph = std::make_shared<const Graph>(decompose(*model.graph));
  const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
  const auto values = exec::interpret(*graph, sources, kWithUpdates);
  const PartitionInput input(*graph);
  ClusterSpec spec = cluster_of(4)->spec();
  spec.devices[1].slowdown = Decimal{2, 0};
  spec.devices[2].slowdown = Decimal{3, 0};
  spec.devices[3].slowdown = Decimal{3, 0};
  const auto cluster = std::make_shared<const Cluster>(std::move(spec));
  const auto problem = compile(graph, cluster);
  const WorkerDevices on = workers_on(*problem);
  ASSERT_GT(on.workers.part({0, 12}, 0, 0).size(), 6);
  for (const MethodInfo* method : all_partition_methods().list()) {
    SCOPED_TRACE(method->key);
    const Plan plan = find_plan(method->key, input, problem, on);
    if (!expect_same(*graph, input.descriptions, plan, sources, values, kWithUpdates)) return;
  }
}

// All that leaves a machine shares its way out: partial results are reduced in stages, and those of
// machines of unequal size along a ring.
std::shared_ptr<const Cluster> machines_of(const std::vector<int>& sizes) {
  ClusterSpec spec;
  spec.name = "machines";
  spec.links.push_back({.bandwidth = 50'000'000'000, .latency = 100});
  for (std::size_t machine = 0; machine < sizes.size(); ++machine) {
    for (int i = 0; i < sizes[machine]; ++i) {
      spec.devices.push_back(
          {.name = fmt::format("m{}.gpu{}", machine, i), .kind = "v100", .memory = 1LL << 34});
    }
  }
  for (const Device& from : spec.devices) {
    for (const Device& to : spec.devices) {
      if (from.name[1] == to.name[1]) continue;
      spec.links.push_back({.from = from.name,
                            .to = to.name,
                            .bandwidth = 1'000'000,
                            .latency = 100,
                            .channel = fmt::format("out of {}", from.name[1])});
    }
  }
  return std::make_shared<const Cluster>(std::move(spec));
}

TEST(PartitionedModel, computes_the_same_on_several_machines) {
  for (const char* name : {kModels[1], kModels[3]}) {
    const Model model = read_model(name);
    const auto graph = std::make_shared<const Graph>(decompose(*model.graph));
    const auto sources = exec::seeded_sources({.low = -0.5, .high = 0.5});
    const auto values = exec::interpret(*graph, sources, kWithUpdates);
    const PartitionInput input(*graph);
    for (const std::vector<int>& sizes :
         std::vector<std::vector<int>>{{2, 2}, {3, 1}, {2, 2, 2}, {4, 4}, {3, 5}}) {
      const auto problem = compile(graph, machines_of(sizes));
      const WorkerDevices on = workers_on(*problem);
      Network network(on.workers, problem->cluster(), on.devices);
      for (const char* method : {"data-parallel", "tofu", "all-row", "recursive-by-time", "zero",
                                 "zero(gradients=true)"}) {
        SCOPED_TRACE(fmt::format("{} by {} on {}", name, method, fmt::join(sizes, "+")));
        const Plan plan = find_plan(method, input, problem, on);
        if (!expect_same(*graph, input.descriptions, plan, sources, values, kWithUpdates,
                         &network)) {
          return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace emplace
