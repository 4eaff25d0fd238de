// Weights, gradients and the optimizer's state are cut apart from what ops need where that pays, in
// time or in memory; nobody has to ask for it.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "tensor/methods/common/divided_updates.h"
#include "tensor/methods/common/joint_search.h"
#include "tensor/methods/common/kept_memory.h"
#include "tensor/partition_setting.h"

#include "zoo/registry.h"

namespace emplace {
namespace {

constexpr const char* kBert =
    "bert:layers=2,hidden=256,heads=4,sequence=16,batch=8,vocabulary=500,optimizer=adam";

Budget plans(std::int64_t count) {
  Budget budget;
  budget.evaluations = count;
  return budget;
}

bool is_cut(const Cuts& cuts) {
  return std::any_of(cuts.begin(), cuts.end(), [](std::int8_t cut) { return cut != kUncut; });
}

// Of the bytes that sources of the role keep, how many are in parts.
double share_in_parts(const Setting& setting, const Plan& plan, OpRole role) {
  double all = 0;
  double cut = 0;
  for (TensorId tensor = 0; tensor < setting.graph->num_tensors(); ++tensor) {
    if (setting.graph->role(setting.graph->producer(tensor)) != role) continue;
    const auto bytes = static_cast<double>(setting.graph->bytes(tensor));
    all += bytes;
    if (is_cut(plan.tensors[tensor])) cut += bytes;
  }
  return cut / all;
}

Plan joint_plan(const Setting& setting, bool apart, std::optional<Bytes> memory = std::nullopt) {
  const PartitionContext context(setting.input, setting.problem, setting.on);
  std::vector<Plan> starts;
  for (const char* method : {"data-parallel", "tofu"}) starts.push_back(setting.find(method).plan);
  return JointSearch(context, {.storage_apart = apart})
      .find("joint", starts, memory, plans(10), Rng(1))
      .value();
}

std::int64_t whole_cost(const Setting& setting, const Plan& plan) {
  const PartitionInput input(
      *setting.graph, {.gradients = false, .elementwise = false, .steps = false, .updates = false});
  const PartitionContext context(input, setting.problem, setting.on);
  Traffic traffic(setting.on.workers, *setting.cluster, setting.on.devices);
  PartitionProblem problem(input, traffic, Reductions::kOnce);
  std::vector<Cuts> tensors, ops;
  for (const TensorId tensor : input.tensor_of_class) tensors.push_back(plan.tensors[tensor]);
  for (const OpId op : input.op_of_class) ops.push_back(plan.ops[op]);
  std::int64_t sum = problem.total_cost(ops, tensors);
  for (ClassId op = 0; op < input.classes.num_ops; ++op) {
    sum += piece_time(context, input, problem, op, ops[op]);
  }
  return sum;
}

// Gradients are reduced to the parts that updates read and weights sent once changed: the bytes of
// one reduction, but each device changes a part alone.
TEST(StorageSearch, state_is_in_parts_though_weights_are_not) {
  for (const int count : {2, 4}) {
    const Setting setting(zoo::build_model("cifar-10-cnn:batch=512,optimizer=adam"), count);
    const Plan apart = joint_plan(setting, true);
    const double weights = share_in_parts(setting, apart, OpRole::kParameter);
    EXPECT_GT(share_in_parts(setting, apart, OpRole::kBuffer), weights + 0.05);
    EXPECT_LT(whole_cost(setting, apart), whole_cost(setting, joint_plan(setting, false)));
  }
}

// With less memory more is in parts, and what is kept is as little as was asked for.
TEST(StorageSearch, kept_memory_is_within_the_limit) {
  const Setting setting(zoo::build_model(kBert), 4);
  const KeptMemory kept(setting.input, setting.on.workers);
  PartitionInput apart(setting.input, {.updates = false});
  const KeptMemory kept_apart(apart, setting.on.workers);
  const auto bytes = [&](const Plan& plan, std::int64_t at) {
    Bytes sum = 0;
    for (ClassId tensor = 0; tensor < apart.classes.num_tensors; ++tensor) {
      const auto alive = kept_apart.alive(tensor);
      if (at < alive.begin || at >= alive.end) continue;
      sum += kept_apart.bytes(tensor, plan.tensors[apart.tensor_of_class[tensor]]);
    }
    return sum;
  };
  const Plan free = joint_plan(setting, true);
  const Bytes most = std::max(bytes(free, 0), bytes(free, 1));
  const Bytes limit = most * 6 / 10;
  const Plan tight = joint_plan(setting, true, limit);
  EXPECT_LE(bytes(tight, 0), limit);
  EXPECT_LE(bytes(tight, 1), limit);
  EXPECT_GE(whole_cost(setting, tight), whole_cost(setting, free));
}

TEST(StorageSearch, is_never_behind_what_it_replaces) {
  for (const double share : {1.0, 0.5, 0.3}) {
    const Setting roomy(zoo::build_model(kBert), 4);
    const auto peak = [&](const std::string& method) {
      const PlanOutcome outcome =
          evaluate_plan(roomy.input, roomy.find(method).plan, roomy.cluster, roomy.on.devices);
      return *std::max_element(outcome.peaks.begin(), outcome.peaks.end());
    };
    const auto memory = static_cast<Bytes>(share * static_cast<double>(peak("data-parallel")));
    const Setting setting(zoo::build_model(kBert), 4, {}, memory);
    for (const std::int64_t count : {7, 14}) {
      const Evaluation found = setting.find("search", plans(count)).value;
      for (const char* other : {"data-parallel", "fsdp", "zero", "zero(gradients=true)"}) {
        const Evaluation value = setting.find(other).value;
        EXPECT_FALSE(value < found) << other << " with " << memory << " bytes and " << count;
      }
    }
  }
}

// What weights, gradients and state that lie alike come to: the best of what others find and of
// joint searches under limits of memory, as they are and with updates that are divided afterwards.
Evaluation best_alike(const Setting& setting, Bytes memory) {
  PartitionContext context(setting.input, setting.problem, setting.on);
  std::vector<Plan> starts;
  for (const char* key : {"data-parallel", "tofu", "recursive-by-time", "equal-chop", "fsdp"}) {
    starts.push_back(setting.find(key).plan);
  }
  std::vector<Plan> found = starts;
  JointSearch search(context, {});
  for (const double share : {100.0, 1.0, 0.85, 0.72, 0.61}) {
    const auto limit = static_cast<Bytes>(share * static_cast<double>(memory));
    if (auto plan = search.find("joint", starts, limit, plans(10), Rng(1))) found.push_back(*plan);
  }
  for (const Plan& plan : found) {
    context.try_plan(plan);
    context.try_plan(with_divided_updates(setting.input, plan, GradientStorage::kInParts));
  }
  return context.incumbent().best()->value;
}

TEST(StorageSearch, finds_more_than_where_all_lies_alike) {
  int better = 0;
  for (const Bytes memory : {20LL << 20, 19LL << 20, 18LL << 20}) {
    const Setting setting(zoo::build_model("bert:layers=2,hidden=256,heads=4,sequence=32,batch=32,"
                                           "vocabulary=500,optimizer=adam"),
                          4, {}, memory);
    const Evaluation found = setting.find("search", plans(24)).value;
    const Evaluation alike = best_alike(setting, memory);
    EXPECT_FALSE(alike < found) << memory;
    if (found < alike) ++better;
  }
  EXPECT_GE(better, 2);
}

// Words are embedded by the weights that the last product has, too.
TEST(StorageSearch, what_nothing_fits_in_can_still_be_lowered) {
  for (const bool apart : {false, true}) {
    const Setting setting(
        zoo::build_model("gpt2:layers=1,hidden=64,heads=4,sequence=16,batch=8,vocabulary=100"), 4);
    const Plan plan = joint_plan(setting, apart, 1000);
    EXPECT_GT(evaluate_plan(setting.input, plan, setting.cluster, setting.on.devices).value.step,
              0);
  }
}

TEST(StorageSearch, the_same_seed_finds_the_same) {
  const Setting setting(zoo::build_model(kBert), 4, {}, 20LL << 20);
  const Plan plan = setting.find("search", plans(14)).plan;
  const Plan again = setting.find("search", plans(14)).plan;
  EXPECT_EQ(plan.tensors, again.tensors);
  EXPECT_EQ(plan.ops, again.ops);
  EXPECT_EQ(plan.held, again.held);
}

}  // namespace
}  // namespace emplace
