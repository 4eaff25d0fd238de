// What is claimed of all divisions of a graph holds for every plan that is simulated.
#include "tensor/step_bound.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "graph/training.h"

#include "tensor/partition_setting.h"
#include "tensor/work_bound.h"

#include "zoo/registry.h"

namespace emplace {
namespace {

Budget few_plans() {
  Budget budget;
  budget.evaluations = 8;
  return budget;
}

// Two machines of two devices, which share what leads out of each.
std::shared_ptr<const Cluster> two_machines(std::int64_t bandwidth_between) {
  ClusterSpec spec = equal_devices(4)->spec();
  for (const int from : {0, 1, 2, 3}) {
    for (const int to : {0, 1, 2, 3}) {
      if (from / 2 == to / 2) continue;
      spec.links.push_back({.from = fmt::format("gpu{}", from),
                            .to = fmt::format("gpu{}", to),
                            .bandwidth = bandwidth_between,
                            .latency = 1000,
                            .channel = fmt::format("out of {}", from / 2)});
    }
  }
  return std::make_shared<const Cluster>(std::move(spec));
}

// No method's plan, nor any that a search tries, is sooner.
void expect_no_sooner(const Setting& setting) {
  const Nanoseconds bound = divided_step_bound(setting.input, *setting.problem, setting.on).step;
  EXPECT_GE(bound, divided_work_bound(setting.input, *setting.problem, setting.on));
  for (const MethodInfo* method : all_partition_methods().list()) {
    PartitionContext context(setting.input, setting.problem, setting.on);
    const Plan plan =
        all_partition_methods().make({method->key})->find(context, few_plans(), Rng(1));
    EXPECT_LE(bound, context.evaluate(plan).value.step) << method->key;
    for (const auto& tried : context.tried()) {
      EXPECT_LE(bound, tried.outcome.value.step) << tried.method;
    }
  }
  EXPECT_LE(bound, setting.find("zero(gradients=true)").value.step);
  EXPECT_LE(bound, setting.find("fsdp(hold=true)").value.step);
}

constexpr const char* kModels[] = {
    "cifar-10-cnn:batch=64", "resnet-50:batch=16,image=64",
    "bert:layers=1,hidden=256,heads=4,sequence=64,batch=8,vocabulary=512",
    "stacked-rnn:layers=1,sequence=3,hidden=256,batch=64"};

TEST(StepBound, no_plan_is_sooner) {
  for (const char* name : kModels) {
    for (const int count : {2, 4}) {
      SCOPED_TRACE(fmt::format("{} on {}", name, count));
      const Setting setting(zoo::build_model(name), count);
      EXPECT_GT(divided_step_bound(setting.input, *setting.problem, setting.on).step,
                divided_rate_bound(*setting.problem, setting.on) * 11 / 10);
      expect_no_sooner(setting);
    }
  }
}

TEST(StepBound, no_plan_is_sooner_where_links_are_slow) {
  for (const char* name : kModels) {
    constexpr std::int64_t kSlow = 200'000'000;
    SCOPED_TRACE(name);
    expect_no_sooner(Setting(zoo::build_model(name), equal_devices(4, 1LL << 34, kSlow), {}));
    expect_no_sooner(Setting(zoo::build_model(name), two_machines(kSlow), {}));
  }
}

// Large products of few examples: gradients of their weights have to be added up, or examples
// exchanged, or computed by everybody.
constexpr const char* kLargeProducts =
    "bert:layers=2,hidden=256,heads=4,sequence=128,batch=16,vocabulary=512";

TEST(StepBound, counts_what_must_be_sent) {
  const auto model = zoo::build_model(kLargeProducts);
  const auto ratio = [&](const std::shared_ptr<const Cluster>& cluster) {
    const Setting setting(model, cluster, {});
    return static_cast<double>(
               divided_step_bound(setting.input, *setting.problem, setting.on).step) /
           static_cast<double>(divided_work_bound(setting.input, *setting.problem, setting.on));
  };
  EXPECT_GT(ratio(equal_devices(2, 1LL << 34, 100'000'000)), 1.3);
  EXPECT_GT(ratio(equal_devices(4, 1LL << 34, 100'000'000)), 1.1);
  EXPECT_GT(ratio(two_machines(100'000'000)), 1.1);
  EXPECT_LT(ratio(equal_devices(4, 1LL << 34, 1'000'000'000'000)), 1.01);
}

TEST(StepBound, no_plan_of_wide_layers_is_sooner) {
  const Setting setting(
      zoo::build_model("stacked-rnn:layers=2,hidden=4096,sequence=2,batch=4096,input=4096"), 4);
  const Nanoseconds bound = divided_step_bound(setting.input, *setting.problem, setting.on).step;
  for (const char* method : {"data-parallel", "tofu", "model-parallel", "zero"}) {
    EXPECT_LE(bound, setting.find(method).value.step) << method;
  }
}

TEST(StepBound, says_whether_it_counts_what_is_sent) {
  const Setting setting(zoo::build_model(kLargeProducts), two_machines(100'000'000), {});
  const StepBound linked = divided_step_bound(setting.input, *setting.problem, setting.on);
  EXPECT_EQ(linked.sending, SendingInBound::kCounted);
  const PlanCosts measured{.collectives = std::make_shared<const CollectiveTimes>()};
  const StepBound alone = divided_step_bound(setting.input, *setting.problem, setting.on, measured);
  EXPECT_EQ(alone.sending, SendingInBound::kMeasured);
  EXPECT_EQ(alone.step, divided_work_bound(setting.input, *setting.problem, setting.on));
  EXPECT_LT(alone.step, linked.step);
}

// Ways to cut all classes of tensors, then of ops.
std::vector<std::vector<Cuts>> all_ways(const Setting& setting) {
  Traffic traffic(setting.on.workers);
  PartitionProblem problem(setting.input, traffic);
  std::vector<std::vector<Cuts>> ways;
  for (ClassId i = 0; i < setting.input.classes.num_tensors; ++i) {
    ways.push_back(problem.ways_of_tensor(i, true));
  }
  for (ClassId i = 0; i < setting.input.classes.num_ops; ++i) {
    ways.push_back(problem.ways_of_op(i, true));
  }
  return ways;
}

Plan plan_with(const Setting& setting, const std::vector<Cuts>& chosen) {
  const auto middle = chosen.begin() + setting.input.classes.num_tensors;
  return expand(setting.input, setting.on.workers, "any", {chosen.begin(), middle},
                {middle, chosen.end()});
}

Nanoseconds step_of(const Setting& setting, const Plan& plan) {
  return evaluate_plan(setting.input, plan, setting.cluster, setting.on.devices).value.step;
}

// Against plans of small graphs: all of them, or a thousand.
TEST(StepBound, no_plan_of_a_small_graph_is_sooner) {
  Rng rng(3);
  for (int trial = 0; trial < 12; ++trial) {
    const Setting setting(random_graph(rng), trial % 2 == 0 ? 2 : 4, {.elementwise = false});
    const auto ways = all_ways(setting);
    double plans = 1;
    for (const auto& each : ways) plans *= static_cast<double>(each.size());
    const Nanoseconds bound = divided_step_bound(setting.input, *setting.problem, setting.on).step;
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    const int tries = static_cast<int>(std::min(plans, 1000.0));
    for (int n = 0; n < tries; ++n) {
      std::vector<Cuts> chosen;
      auto rest = static_cast<std::size_t>(n);
      for (const auto& each : ways) {
        chosen.push_back(each[plans <= 1000 ? rest % each.size() : rng.below(each.size())]);
        rest /= each.size();
      }
      least = std::min(least, step_of(setting, plan_with(setting, chosen)));
    }
    EXPECT_GT(bound, 0);
    EXPECT_LE(bound, least) << "trial " << trial;
  }
}

// Training steps of small graphs, on links so slow that sending decides: random cuts of everything,
// and what a descent by single cuts makes of them.
TEST(StepBound, no_plan_of_a_small_training_step_is_sooner) {
  Rng rng(11);
  int trained = 0;
  int tighter = 0;
  for (int trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE(fmt::format("trial {}", trial));
    std::optional<Graph> step;
    try {
      step = training_step(random_graph(rng, 512), {.optimizer = Optimizer::kAdam});
    } catch (const Error&) {
      continue;  // nothing to train
    }
    ++trained;
    const std::int64_t bandwidth = trial % 2 == 0 ? 100'000'000 : 10'000'000'000;
    const Setting setting(
        std::move(*step),
        trial % 3 == 0 ? two_machines(bandwidth)
                       : equal_devices(trial % 3 == 1 ? 2 : 4, 1LL << 34, bandwidth),
        {.gradients = false, .elementwise = false, .steps = false, .updates = false});
    const Nanoseconds bound = divided_step_bound(setting.input, *setting.problem, setting.on).step;
    if (bound > divided_work_bound(setting.input, *setting.problem, setting.on)) ++tighter;
    const auto ways = all_ways(setting);
    std::vector<Cuts> best;
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    const auto try_plan = [&](const std::vector<Cuts>& chosen) {
      try {
        const Nanoseconds taken = step_of(setting, plan_with(setting, chosen));
        if (taken <= least) best = chosen;
        least = std::min(least, taken);
      } catch (const Error&) {  // changes weights where they are not
      }
    };
    std::vector<Cuts> whole;
    for (const auto& each : ways) whole.push_back(each.back());
    try_plan(whole);
    for (int n = 0; n < 600; ++n) {
      std::vector<Cuts> chosen = best;
      for (std::size_t i = 0; i < ways.size(); ++i) {
        if (n % 3 == 0 || rng.below(ways.size()) < 2)
          chosen[i] = ways[i][rng.below(ways[i].size())];
      }
      try_plan(chosen);
    }
    EXPECT_LE(bound, least);
  }
  EXPECT_GT(trained, 15);
  EXPECT_GT(tighter, 5);
}

// Two devices, one half as fast: together they are not more than 1.5 times as fast as one.
TEST(StepBound, slower_devices_do_less) {
  const auto graph =
      std::make_shared<const Graph>(decompose(zoo::build_model("bert-base:batch=8")));
  const auto bound_on = [&](int devices, Decimal slowdown) {
    ClusterSpec spec = equal_devices(devices)->spec();
    spec.devices.back().slowdown = slowdown;
    const auto problem = compile(graph, std::make_shared<const Cluster>(std::move(spec)));
    return static_cast<double>(divided_rate_bound(*problem, workers_on(*problem)));
  };
  const double one = 2 * bound_on(2, Decimal{1, 0});
  EXPECT_NEAR(bound_on(2, Decimal{2, 0}), one / 1.5, 0.01 * one);
}

}  // namespace
}  // namespace emplace
