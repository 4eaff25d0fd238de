// What the searches promise: the best plan where all plans can be tried, and never a worse one than
// cutting every tensor along one dimension.
#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.h"

#include "cluster/presets.h"
#include "graph/graph_builder.h"
#include "graph/training.h"

#include "tensor/decompose.h"
#include "tensor/evaluate.h"
#include "tensor/methods/all.h"
#include "tensor/methods/common/joint_search.h"
#include "tensor/partition_setting.h"
#include "tensor/topology.h"

#include "zoo/registry.h"

namespace emplace {
namespace {

// Cuts by class, and what they cost.
struct Best {
  std::int64_t cost = kForbidden;
  std::vector<Cuts> tensors, ops;
};

// The least over all ways to keep tensors, with every op divided in the best way for them.
Best best_of_all(PartitionProblem& problem, const PartitionInput& input, bool spare,
                 const std::function<std::int64_t(ClassId, const Cuts&)>& op_time) {
  const Classes& classes = input.classes;
  std::vector<std::vector<Cuts>> tensor_ways, op_ways;
  for (ClassId i = 0; i < classes.num_tensors; ++i) {
    tensor_ways.push_back(problem.ways_of_tensor(i, spare));
  }
  for (ClassId i = 0; i < classes.num_ops; ++i) op_ways.push_back(problem.ways_of_op(i, spare));
  Best best;
  std::vector<Cuts> tensors(classes.num_tensors);
  const std::function<void(ClassId)> choose = [&](ClassId next) {
    if (next < classes.num_tensors) {
      for (const Cuts& cuts : tensor_ways[next]) {
        tensors[next] = cuts;
        choose(next + 1);
      }
      return;
    }
    std::int64_t sum = 0;
    std::vector<Cuts> ops;
    for (ClassId op = 0; op < classes.num_ops; ++op) {
      std::int64_t least = kForbidden;
      ops.emplace_back();
      for (const Cuts& cuts : op_ways[op]) {
        const std::int64_t cost = problem.op_cost(op, cuts, tensors) + op_time(op, cuts);
        if (cost < least) ops.back() = cuts;
        least = std::min(least, cost);
      }
      sum += least * input.ops_in_class[op];
    }
    if (sum < best.cost) best = {sum, tensors, ops};
  };
  choose(0);
  return best;
}

std::int64_t least_of_all(PartitionProblem& problem, const PartitionInput& input, bool spare,
                          const std::function<std::int64_t(ClassId, const Cuts&)>& op_time) {
  return best_of_all(problem, input, spare, op_time).cost;
}

template <class Id>
std::vector<Cuts> of_classes(const std::vector<Cuts>& all, const std::vector<Id>& first) {
  std::vector<Cuts> result;
  for (const std::uint32_t i : first) result.push_back(all[i]);
  return result;
}

std::int64_t cost_of(PartitionProblem& problem, const PartitionInput& input, const Plan& plan) {
  return problem.total_cost(of_classes(plan.ops, input.op_of_class),
                            of_classes(plan.tensors, input.tensor_of_class));
}

const auto kNoTime = [](ClassId, const Cuts&) { return std::int64_t{0}; };

TEST(PartitionSearch, one_level_of_tofu_moves_the_fewest_bytes_there_are) {
  Rng rng(3);
  for (int i = 0; i < 30; ++i) {
    for (const int count : {2, 3}) {
      SCOPED_TRACE(fmt::format("graph {} on {}", i, count));
      const Setting setting(random_graph(rng), count,
                            {.gradients = false, .elementwise = false, .steps = false});
      Traffic traffic(setting.on.workers);
      PartitionProblem problem(setting.input, traffic);
      EXPECT_EQ(cost_of(problem, setting.input, setting.find("tofu").plan),
                least_of_all(problem, setting.input, false, kNoTime));
    }
  }
}

// What the cuts of the first level cost between its two groups.
std::int64_t first_level_cost(const Setting& setting, std::vector<Cuts> tensors,
                              std::vector<Cuts> ops) {
  const Workers groups = setting.on.workers.first(1);
  Traffic traffic(groups);
  PartitionProblem problem(setting.input, traffic);
  for (Cuts& cuts : tensors) cuts.resize(1);
  for (Cuts& cuts : ops) cuts.resize(1);
  return problem.total_cost(ops, tensors);
}

// Two levels: the recursion decides one after the other, all plans both at once. Where that is not
// the best, several cuts of the first level were equally good, and the second level's costs differ
// between them, which the recursion does not see.
TEST(PartitionSearch, the_recursion_of_tofu_loses_only_by_ties_of_the_first_level) {
  Rng rng(4);
  int best = 0;
  for (int i = 0; i < 36; ++i) {
    SCOPED_TRACE(fmt::format("graph {}", i));
    const Setting setting(random_graph(rng), 4,
                          {.gradients = false, .elementwise = false, .steps = false});
    Traffic traffic(setting.on.workers);
    PartitionProblem problem(setting.input, traffic);
    const Best least = best_of_all(problem, setting.input, false, kNoTime);
    const Plan plan = setting.find("tofu").plan;
    const std::int64_t cost = cost_of(problem, setting.input, plan);
    EXPECT_GE(cost, least.cost);
    if (cost == least.cost) {
      ++best;
      continue;
    }
    EXPECT_LE(4 * cost, 5 * least.cost);
    EXPECT_EQ(first_level_cost(setting, of_classes(plan.tensors, setting.input.tensor_of_class),
                               of_classes(plan.ops, setting.input.op_of_class)),
              first_level_cost(setting, least.tensors, least.ops));
  }
  EXPECT_EQ(best, 34);
}

TEST(PartitionSearch, the_joint_search_finds_the_fastest_plan_of_all) {
  Rng rng(5);
  for (int i = 0; i < 12; ++i) {
    for (const int count : {2, 4}) {
      SCOPED_TRACE(fmt::format("graph {} on {}", i, count));
      const Setting setting(random_graph(rng), count,
                            {.gradients = false, .elementwise = false, .steps = false});
      if (count == 4 && setting.input.classes.num_tensors > 5) continue;
      const PartitionContext context(setting.input, setting.problem, setting.on);
      Traffic traffic(setting.on.workers, *setting.cluster, setting.on.devices);
      PartitionProblem problem(setting.input, traffic);
      const auto time = [&](ClassId op, const Cuts& cuts) {
        return piece_time(context, setting.input, problem, op, cuts);
      };
      JointSearch search(context, {});
      const Plan plan =
          search.find("joint", {}, std::nullopt, Budget{}.or_default(kPartitionSeconds), Rng(1))
              .value();
      std::int64_t cost = cost_of(problem, setting.input, plan);
      for (ClassId op = 0; op < setting.input.classes.num_ops; ++op) {
        cost += time(op, plan.ops[setting.input.op_of_class[op]]) * setting.input.ops_in_class[op];
      }
      EXPECT_EQ(cost, least_of_all(problem, setting.input, true, time));
    }
  }
}

// Every tensor along its n-th dimension, where it has one that can be cut so.
std::vector<Cuts> one_dimension(PartitionProblem& problem, const PartitionInput& input,
                                std::int8_t dimension) {
  std::vector<Cuts> tensors;
  for (ClassId i = 0; i < input.classes.num_tensors; ++i) {
    const std::vector<Cuts> ways = problem.ways_of_tensor(i, false);
    const auto found = std::find_if(ways.begin(), ways.end(), [&](const Cuts& cuts) {
      return std::all_of(cuts.begin(), cuts.end(),
                         [&](std::int8_t cut) { return cut == dimension; });
    });
    tensors.push_back(found == ways.end() ? ways.front() : *found);
  }
  return tensors;
}

TEST(PartitionSearch, tofu_never_moves_more_than_one_dimension_everywhere) {
  for (const char* name :
       {"cifar-10-cnn:batch=32", "stacked-rnn:layers=2,sequence=3,hidden=64,batch=16",
        "bert:layers=2,hidden=64,heads=4,sequence=16,batch=8,vocabulary=128",
        "resnet-50:batch=16,image=64"}) {
    for (const int count : {2, 4, 6, 8}) {
      SCOPED_TRACE(fmt::format("{} on {}", name, count));
      const Setting setting(zoo::build_model(name), count);
      Traffic traffic(setting.on.workers);
      PartitionProblem problem(setting.input, traffic);
      const std::int64_t cost = cost_of(problem, setting.input, setting.find("tofu").plan);
      std::vector<std::vector<Cuts>> op_ways;
      for (ClassId op = 0; op < setting.input.classes.num_ops; ++op) {
        op_ways.push_back(problem.ways_of_op(op, false));
      }
      for (std::int8_t dimension = 0; dimension < 4; ++dimension) {
        const auto tensors = one_dimension(problem, setting.input, dimension);
        const auto ops = best_ops(problem, setting.input, tensors, op_ways);
        EXPECT_LE(cost, problem.total_cost(ops, tensors)) << "dimension " << int{dimension};
      }
    }
  }
}

// With plenty of memory weights are everywhere; with little they are divided, at some cost in time.
// Of weights of S bytes on n devices, gradients that are added up everywhere send 2 (n - 1) S;
// weights in parts send (n - 1) S for their gradients and as much each time that they are fetched:
// once a step, or for the forward and the backward pass (which the first layer's do not need).
TEST(PartitionSearch, weights_in_parts_send_what_zero_does) {
  constexpr int kDevices = 4;
  constexpr std::int64_t kWidth = 256;
  GraphBuilder builder("layers");
  const auto matrix = [](std::int64_t a, std::int64_t b) {
    return TensorSpec{.shape = {a, b}, .dtype = DType::kFloat32};
  };
  TensorId x = builder.add({.name = "x", .type = "input"}, {matrix(64, kWidth)})[0];
  constexpr int kLayers = 12;
  for (int i = 0; i < kLayers; ++i) {
    const auto w =
        builder.add({.name = fmt::format("w{}", i), .type = "parameter"}, {matrix(kWidth, kWidth)});
    x = builder.add({.name = fmt::format("y{}", i), .type = "MatMul", .inputs = {x, w[0]}},
                    {matrix(64, kWidth)})[0];
    x = builder.add({.name = fmt::format("z{}", i), .type = "Relu", .inputs = {x}},
                    {matrix(64, kWidth)})[0];
  }
  const Setting setting(training_step(std::move(builder).build(), {.optimizer = Optimizer::kAdam}),
                        kDevices);
  constexpr Bytes kLayer = (kDevices - 1) * kWidth * kWidth * 4;
  const PlanSolution everywhere = setting.find("data-parallel");
  const PlanSolution parts = setting.find("fsdp");
  const PlanSolution held = setting.find("fsdp(hold=true)");
  EXPECT_EQ(everywhere.moved, 2 * kLayers * kLayer);
  EXPECT_EQ(held.moved, 2 * kLayers * kLayer);
  // What was fetched for the last layers serves their gradients too, which follow closely.
  EXPECT_GT(parts.moved, (3 * kLayers - 8) * kLayer);
  EXPECT_LT(parts.moved, 3 * kLayers * kLayer);
  const auto peak = [&](const PlanSolution& found) {
    const PlanOutcome outcome =
        evaluate_plan(setting.input, found.plan, setting.cluster, setting.on.devices);
    return *std::max_element(outcome.peaks.begin(), outcome.peaks.end());
  };
  // Updates in parts: gradients are reduced everywhere or in parts, weights sent once changed.
  const PlanSolution state = setting.find("zero");
  const PlanSolution gradients = setting.find("zero(gradients=true)");
  EXPECT_EQ(state.moved, 3 * kLayers * kLayer);
  EXPECT_EQ(gradients.moved, 2 * kLayers * kLayer);
  // Each device has all of the weights, and a quarter of the two moments.
  constexpr Bytes kMoments = 2 * kLayers * kWidth * kWidth * 4;
  EXPECT_LE(peak(state), peak(everywhere) - kMoments / 2);
  EXPECT_LE(peak(gradients), peak(state));
  // Weights, two moments and gradients.
  EXPECT_LT(peak(parts), peak(held));
  EXPECT_LT(peak(held), peak(everywhere));
  EXPECT_LT(peak(parts), peak(everywhere) * 6 / 10);
}

// What is asked for is what is minimised: the step with slow overlap, not the one without.
TEST(PartitionSearch, the_search_minimises_the_step_with_slow_overlap) {
  const Setting setting(zoo::build_model("cifar-10-cnn:batch=64"), 4);
  const PlanCosts slow{.overlap_slowdown = 3};
  const auto slow_step = [&](const Plan& plan) {
    return evaluate_plan(setting.input, plan, setting.cluster, setting.on.devices, slow).value.step;
  };
  PartitionContext context(setting.input, setting.problem, setting.on, slow);
  Budget budget;
  budget.evaluations = 12;
  const Plan plan = all_partition_methods().make({"search"})->find(context, budget, Rng(1));
  const Nanoseconds best = context.incumbent().best()->value.step;
  EXPECT_EQ(best, slow_step(plan));
  int slower = 0;
  for (const auto& tried : context.tried()) {
    EXPECT_EQ(tried.outcome.value.step, slow_step(tried.plan));
    EXPECT_LE(best, tried.outcome.value.step);
    const PlanOutcome fast =
        evaluate_plan(setting.input, tried.plan, setting.cluster, setting.on.devices);
    if (fast.value.step < tried.outcome.value.step) ++slower;
  }
  EXPECT_GT(slower, 0) << "something is sent while devices compute";
}

TEST(PartitionSearch, plans_stay_within_the_memory) {
  const auto outcome_with = [](Bytes memory) {
    const Setting setting(
        zoo::build_model(
            "stacked-rnn:layers=2,sequence=4,hidden=512,input=64,classes=16,batch=256"),
        4, {}, memory);
    return evaluate_plan(setting.input, setting.find("search").plan, setting.cluster,
                         setting.on.devices);
  };
  const PlanOutcome free = outcome_with(1LL << 34);
  const Bytes most = *std::max_element(free.peaks.begin(), free.peaks.end());
  const PlanOutcome tight = outcome_with(most * 3 / 4);
  EXPECT_TRUE(free.value.fits());
  EXPECT_TRUE(tight.value.fits());
  EXPECT_GE(tight.value.step, free.value.step);
}

// What was given is never lost, and costs no evaluation.
TEST(PartitionSearch, the_search_begins_from_what_it_is_given) {
  const Setting setting(zoo::build_model("stacked-rnn:layers=2,sequence=3,hidden=64,batch=16"), 4);
  const PlanSolution best = setting.find("search");
  PartitionContext context(setting.input, setting.problem, setting.on, PlanCosts{}, {best.plan});
  ASSERT_EQ(context.starts().size(), 1U);
  EXPECT_EQ(context.starts()[0].value, best.value);
  Budget none;
  none.evaluations = 0;
  const Plan plan = all_partition_methods().make({"search"})->find(context, none, Rng(1));
  EXPECT_EQ(context.evaluations(), 0);
  EXPECT_EQ(plan.tensors, best.plan.tensors);
  EXPECT_EQ(plan.ops, best.plan.ops);
}

// Listeners hear of every better plan, and the answer is the last of them.
TEST(PartitionSearch, the_search_offers_what_it_finds) {
  const Setting setting(zoo::build_model("cifar-10-cnn:batch=32"), 4);
  PartitionContext context(setting.input, setting.problem, setting.on);
  std::vector<PlanSolution> heard;
  const auto listening = context.incumbent().listen(
      [&](const auto& incumbent) { heard.push_back(*incumbent.best()); });
  const Plan plan = all_partition_methods().make({"search"})->find(context, {}, Rng(1));
  ASSERT_GT(heard.size(), 1U);
  for (std::size_t i = 1; i < heard.size(); ++i) EXPECT_LT(heard[i].value, heard[i - 1].value);
  EXPECT_EQ(plan.tensors, heard.back().plan.tensors);
  EXPECT_EQ(context.evaluate(plan).value, heard.back().value);
}

// By the costs that it goes by, what is weighed in full is better than the first way for each.
TEST(PartitionSearch, options_reach_the_search) {
  const Setting setting(zoo::build_model("cifar-10-cnn:batch=32"), 8);
  const PartitionContext context(setting.input, setting.problem, setting.on);
  Traffic traffic(setting.on.workers, *setting.cluster, setting.on.devices);
  PartitionProblem problem(setting.input, traffic);
  const auto cost = [&](const std::string& method) {
    Budget budget;
    budget.evaluations = 10;
    const Plan plan = setting.find(method, budget).plan;
    std::int64_t sum = cost_of(problem, setting.input, plan);
    for (ClassId op = 0; op < setting.input.classes.num_ops; ++op) {
      const Cuts& cuts = plan.ops[setting.input.op_of_class[op]];
      sum += piece_time(context, setting.input, problem, op, cuts) * setting.input.ops_in_class[op];
    }
    return sum;
  };
  EXPECT_LT(cost("optcnn(ways=1000)"), cost("optcnn(ways=1,rounds=1)"));
}

// Every step of the network makes partial gradients of the same weights, which are added before
// they are reduced: so the joint search weighs them.
TEST(PartitionSearch, gradients_of_shared_weights_are_reduced_once) {
  const Setting setting(zoo::build_model("stacked-rnn:layers=2,sequence=6,hidden=64,batch=64"), 2);
  const PlanSolution found = setting.find("data-parallel");
  Traffic traffic(setting.on.workers);
  PartitionProblem problem(setting.input, traffic, Reductions::kOnce);
  EXPECT_EQ(cost_of(problem, setting.input, found.plan), found.moved);
  PartitionProblem by_op(setting.input, traffic);
  EXPECT_GT(cost_of(by_op, setting.input, found.plan), 5 * found.moved);
}

TEST(PartitionSearch, optcnn_takes_data_parallelism_where_steps_share_weights) {
  const Setting setting(zoo::build_model("stacked-rnn:layers=1,sequence=16,hidden=512,batch=2048"),
                        2);
  EXPECT_LE(setting.find("optcnn").value.step, setting.find("data-parallel").value.step);
}

// Partial sums are a way to divide a product that OptCNN does not have: without them no plan moves
// less.
TEST(PartitionSearch, reductions_never_cost_more) {
  for (const char* name :
       {"stacked-rnn:layers=2,sequence=2,hidden=256,batch=16", "cifar-10-cnn:batch=8"}) {
    const Setting setting(zoo::build_model(name), 4);
    Traffic traffic(setting.on.workers);
    PartitionProblem problem(setting.input, traffic);
    const Plan plan = setting.find("tofu").plan;
    std::vector<std::vector<Cuts>> without;
    for (ClassId op = 0; op < setting.input.classes.num_ops; ++op) {
      const tdl::Description* description =
          setting.input.descriptions[setting.input.op_of_class[op]];
      std::vector<Cuts> ways = problem.ways_of_op(op, true);
      if (description != nullptr) {
        std::erase_if(ways, [&](const Cuts& cuts) {
          return std::any_of(cuts.begin(), cuts.end(), [&](std::int8_t cut) {
            return cut != kUncut && description->is_reduction(static_cast<tdl::VariableId>(cut));
          });
        });
      }
      if (ways.empty()) ways.emplace_back(setting.on.workers.levels(), kUncut);
      without.push_back(std::move(ways));
    }
    const auto tensors = of_classes(plan.tensors, setting.input.tensor_of_class);
    const auto ops = best_ops(problem, setting.input, tensors, without);
    EXPECT_LT(cost_of(problem, setting.input, plan), problem.total_cost(ops, tensors));
  }
}

// No more ways than it weighs, so none is left out.
TEST(PartitionSearch, optcnn_weighs_all_ways_on_eight_devices) {
  const Setting setting(zoo::build_model("resnet-50:batch=32,image=64"), 8);
  Traffic traffic(setting.on.workers);
  PartitionProblem problem(setting.input, traffic);
  const auto weighed = static_cast<std::size_t>(
      std::stoi(all_partition_methods().info("optcnn").options.front().default_value));
  std::size_t most = 0;
  for (ClassId op = 0; op < setting.input.classes.num_ops; ++op) {
    most = std::max(most, problem.ways_of_op(op, true).size());
  }
  for (ClassId tensor = 0; tensor < setting.input.classes.num_tensors; ++tensor) {
    most = std::max(most, problem.ways_of_tensor(tensor, true).size());
  }
  EXPECT_GT(most, 100U);
  EXPECT_LE(most, weighed);
}

// When time is over before it begins, the quickest method's plan is the answer.
TEST(PartitionSearch, a_search_without_time_has_a_plan) {
  const Setting setting(zoo::build_model("cifar-10-cnn:batch=32"), 4);
  Budget none;
  none.seconds = 0;
  PartitionContext context(setting.input, setting.problem, setting.on);
  const Plan plan = all_partition_methods().make({"search"})->find(context, none, Rng(1));
  EXPECT_EQ(context.evaluations(), 1);
  EXPECT_EQ(plan.tensors, setting.find("data-parallel").plan.tensors);
  EXPECT_EQ(context.limit(), nullptr) << "as it was";
}

TEST(PartitionSearch, methods_give_up_when_their_limit_is_over) {
  const Setting setting(zoo::build_model("cifar-10-cnn:batch=32"), 4);
  Budget none;
  none.seconds = 0;
  PartitionContext context(setting.input, setting.problem, setting.on);
  context.set_limit(none);
  for (const char* key : {"tofu", "optcnn", "equal-chop", "all-row", "spartan"}) {
    EXPECT_THROW(all_partition_methods().make({key})->find(context, {}, Rng(1)), OutOfTime) << key;
  }
  EXPECT_NO_THROW(all_partition_methods().make({"data-parallel"})->find(context, {}, Rng(1)));
}

// Two machines with a slow network between them: what each does by itself is a plan of both.
TEST(PartitionSearch, machines_may_do_the_same_where_the_network_is_slow) {
  const auto machines = std::make_shared<const Cluster>(preset_cluster("2x(2xa100-nvlink)@1GB/s"));
  const Setting both(zoo::build_model("stacked-rnn:layers=1,hidden=512,sequence=2,batch=16"),
                     machines, {});
  Budget few;
  few.evaluations = 3;
  const PlanSolution found = both.find("search", few);
  EXPECT_LT(found.value.step, both.find("data-parallel").value.step / 2);
}

// What was tried is remembered, with the divided graph of the best.
TEST(PartitionSearch, the_search_keeps_what_it_tried) {
  const Setting setting(zoo::build_model("cifar-10-cnn:batch=32"), 4);
  PartitionContext context(setting.input, setting.problem, setting.on);
  const Plan plan = all_partition_methods().make({"search"})->find(context, {}, Rng(1));
  const auto tried = context.tried();
  EXPECT_EQ(std::ssize(tried), context.evaluations());
  int whole = 0;
  for (const auto& each : tried) {
    EXPECT_FALSE(each.outcome.value < context.incumbent().best()->value);
    if (each.outcome.problem == nullptr) continue;
    ++whole;
    EXPECT_EQ(each.outcome.value, context.incumbent().best()->value);
    EXPECT_EQ(each.plan.tensors, plan.tensors);
  }
  EXPECT_EQ(whole, 1);
}

}  // namespace
}  // namespace emplace
