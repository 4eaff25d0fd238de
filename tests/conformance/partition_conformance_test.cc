// What every partition method promises (tensor/method.h), checked on every registered one.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "tensor/decompose.h"
#include "tensor/evaluate.h"
#include "tensor/method.h"
#include "tensor/methods/all.h"
#include "tensor/topology.h"

#include "support/budgets.h"
#include "support/tiny_graphs.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

constexpr std::int64_t kPlans = 60;

Cluster cluster_of(int devices, Bytes memory, bool unequal = false) {
  ClusterSpec spec;
  spec.name = "test";
  for (int i = 0; i < devices; ++i) {
    spec.devices.push_back({.name = fmt::format("gpu{}", i), .kind = "v100", .memory = memory});
    if (unequal) spec.devices.back().slowdown = Decimal{1 + i, 0};
  }
  spec.links.push_back({.bandwidth = 10'000'000'000, .latency = 5000});
  return Cluster(std::move(spec));
}

// Two groups of two, with slow links between them.
Cluster two_machines() {
  ClusterSpec spec = cluster_of(4, 1LL << 34).spec();
  spec.links.clear();
  for (const auto& [from, to] : {std::pair{0, 1}, std::pair{2, 3}}) {
    for (const auto& [a, b] : {std::pair{from, to}, std::pair{to, from}}) {
      spec.links.push_back({.from = fmt::format("gpu{}", a),
                            .to = fmt::format("gpu{}", b),
                            .bandwidth = 100'000'000'000,
                            .latency = 1000});
    }
  }
  spec.links.push_back({.bandwidth = 1'000'000'000, .latency = 20'000});
  return Cluster(std::move(spec));
}

// Dimensions of one, empty tensors, an op that nobody describes.
Graph odd() {
  GraphBuilder builder("odd");
  const auto tensor = [](Shape shape) {
    return TensorSpec{.shape = std::move(shape), .dtype = DType::kFloat32};
  };
  const auto x = builder.add({.name = "x", .type = "input"}, {tensor({1, 7})});
  const auto y = builder.add({.name = "y", .type = "Relu", .inputs = x}, {tensor({1, 7})});
  builder.add({.name = "z", .type = "Mystery", .inputs = y}, {{.bytes = 100}});
  const auto none = builder.add({.name = "none", .type = "input"}, {tensor({0, 4})});
  builder.add({.name = "still_none", .type = "Relu", .inputs = none}, {tensor({0, 4})});
  return std::move(builder).build();
}

struct Case {
  Case(std::string label, Graph made, Cluster devices)
      : name(std::move(label)),
        graph(std::make_shared<const Graph>(decompose(made))),
        cluster(std::make_shared<const Cluster>(std::move(devices))),
        problem(compile(graph, cluster)),
        on(workers_on(*problem)),
        input(*graph) {}

  std::string name;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster;
  std::shared_ptr<const Problem> problem;
  WorkerDevices on;
  PartitionInput input;
};

constexpr const char* kRnn = "stacked-rnn:layers=1,sequence=3,hidden=32,input=16,classes=8,batch=8";

// Graphs of several sorts on one level of workers, two, three, and an odd number; plenty of memory
// and too little.
const std::vector<std::unique_ptr<Case>>& cases() {
  static const auto all = [] {
    std::vector<std::unique_ptr<Case>> made;
    const auto add = [&](const char* name, Graph graph, Cluster cluster) {
      made.push_back(std::make_unique<Case>(name, std::move(graph), std::move(cluster)));
    };
    add("rnn_on_two", zoo::build_model(kRnn), cluster_of(2, 1LL << 34));
    add("rnn_on_two_machines", zoo::build_model(kRnn), two_machines());
    add("rnn_with_no_room", zoo::build_model(kRnn), cluster_of(4, 1000));
    add("cnn_on_three_unequal", zoo::build_model("cifar-10-cnn:batch=6"),
        cluster_of(3, 1LL << 34, true));
    add("cnn_on_eight", zoo::build_model("cifar-10-cnn:batch=16"), cluster_of(8, 1LL << 34));
    add("attention_on_four",
        zoo::build_model("bert:layers=1,hidden=16,heads=4,sequence=6,batch=4,vocabulary=20"),
        cluster_of(4, 1LL << 34));
    add("odd_on_four", odd(), cluster_of(4, 1LL << 34));
    add("training_step_without_shapes", training_step(), cluster_of(2, 1LL << 34));
    add("one_op_on_six", one_op(), cluster_of(6, 1LL << 34));
    return made;
  }();
  return all;
}

const Case& case_named(const std::string& name) {
  for (const auto& on : cases()) {
    if (on->name == name) return *on;
  }
  throw std::logic_error("there is no case " + name);
}

std::vector<std::string> method_keys() {
  std::vector<std::string> keys;
  for (const MethodInfo* info : all_partition_methods().list()) keys.push_back(info->key);
  return keys;
}

class PartitionConformance : public testing::TestWithParam<std::string> {
 protected:
  const MethodInfo& info() const { return all_partition_methods().info(GetParam()); }

  Plan find(PartitionContext& context, const Budget& budget, std::uint64_t seed = 1,
            const OptionValues& options = {}) const {
    return all_partition_methods().make({GetParam(), options})->find(context, budget, Rng(seed));
  }
  Plan find(const Case& on, const Budget& budget, std::uint64_t seed = 1,
            const OptionValues& options = {}) const {
    PartitionContext context(on.input, on.problem, on.on);
    return find(context, budget, seed, options);
  }

  // Lowers, simulates, and says who made it for whom.
  void expect_valid(const Case& on, const Plan& plan) const {
    EXPECT_EQ(plan.method, GetParam()) << on.name;
    EXPECT_EQ(plan.workers.factors(), on.on.workers.factors()) << on.name;
    ASSERT_EQ(plan.tensors.size(), on.graph->num_tensors()) << on.name;
    ASSERT_EQ(plan.ops.size(), on.graph->num_ops()) << on.name;
    PlanOutcome outcome;
    ASSERT_NO_THROW(outcome = evaluate_plan(on.input, plan, on.cluster, on.on.devices)) << on.name;
    EXPECT_NO_THROW(check_placement(*outcome.problem, outcome.placement)) << on.name;
    EXPECT_GE(outcome.moved, 0) << on.name;
    for (OpId op = 0; op < on.graph->num_ops(); ++op) {
      for (Worker worker = 0; worker < on.on.workers.count(); ++worker) {
        const std::string piece = fmt::format("{}@{}", on.graph->op_name(op), worker);
        ASSERT_TRUE(outcome.problem->graph().find_op(piece)) << on.name << ": " << piece;
      }
    }
  }

  void expect_refused(const OptionValues& options) const {
    try {
      all_partition_methods().make({GetParam(), options});
      ADD_FAILURE() << GetParam() << " takes " << options[0].first << "=" << options[0].second;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOption) << error.what();
      EXPECT_NE(std::string(error.what()).find(options[0].first), std::string::npos)
          << "the message does not name the option: " << error.what();
    }
  }
};

void expect_same(const Plan& a, const Plan& b, const std::string& name) {
  EXPECT_EQ(a.tensors, b.tensors) << name;
  EXPECT_EQ(a.ops, b.ops) << name;
}

TEST_P(PartitionConformance, divides_graphs_of_every_sort_and_prints_nothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::vector<Plan> plans;
  std::string failure;
  try {
    for (const auto& on : cases()) plans.push_back(find(*on, evaluations(kPlans)));
  } catch (const std::exception& error) {
    failure = error.what();
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_EQ(failure, "");
  for (std::size_t i = 0; i < plans.size(); ++i) {
    expect_valid(*cases()[i], plans[i]);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// As the heads of classifiers are, and biases: what is left of one dimension, or none, is not
// enough for all levels.
TEST_P(PartitionConformance, divides_weights_that_have_fewer_elements_than_there_are_devices) {
  for (const auto& [devices, classes] :
       {std::pair{4, 2}, {4, 3}, {8, 10}, {12, 2}, {12, 10}, {16, 3}}) {
    const std::string model = fmt::format(
        "stacked-rnn:layers=1,hidden=10,input=3,sequence=2,batch=16,classes={},optimizer={}",
        classes, classes == 3 ? "adam" : "sgd");
    const Case on(fmt::format("{} on {}", model, devices), zoo::build_model(model),
                  cluster_of(devices, 1LL << 34));
    expect_valid(on, find(on, evaluations(5)));
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST_P(PartitionConformance, gives_the_same_plan_for_the_same_seed_whatever_the_threads) {
  for (const auto& on : cases()) {
    const Plan first = find(*on, evaluations(kPlans, 1), 5);
    expect_same(first, find(*on, evaluations(kPlans, 2), 5), on->name);
  }
}

TEST_P(PartitionConformance, gives_different_graphs_to_threads_without_mixing_them_up) {
  std::vector<Plan> alone;
  for (const auto& on : cases()) alone.push_back(find(*on, evaluations(kPlans), 9));
  std::vector<std::vector<Plan>> together(2, std::vector<Plan>(alone.size()));
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < together.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = 0; i < alone.size(); ++i) {
        const std::size_t at = (i + thread * 4) % alone.size();
        together[thread][at] = find(*cases()[at], evaluations(kPlans), 9);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < alone.size(); ++i) {
    for (const auto& plans : together) expect_same(plans[i], alone[i], cases()[i]->name);
  }
}

TEST_P(PartitionConformance, returns_a_valid_plan_when_there_is_no_budget_at_all) {
  const std::atomic<bool> cancelled{true};
  Budget stopped;
  stopped.cancelled = &cancelled;
  Budget no_time;
  no_time.seconds = 0;
  for (const auto& on : cases()) {
    for (const Budget& budget : {evaluations(0), evaluations(1), stopped, no_time}) {
      PartitionContext context(on->input, on->problem, on->on);
      expect_valid(*on, find(context, budget));
      ASSERT_FALSE(HasFatalFailure());
      EXPECT_LE(context.evaluations(), 1) << on->name;
    }
  }
}

TEST_P(PartitionConformance, stops_when_its_evaluations_are_spent) {
  for (const std::int64_t limit : {2, 5}) {
    for (const auto& on : cases()) {
      PartitionContext context(on->input, on->problem, on->on);
      find(context, evaluations(limit));
      EXPECT_LE(context.evaluations(), limit) << on->name;
    }
  }
}

// Whatever the incumbent has come to hold is the simulator's word on a plan.
TEST_P(PartitionConformance, tells_the_incumbent_nothing_but_the_truth) {
  for (const auto& on : cases()) {
    PartitionContext context(on->input, on->problem, on->on);
    const Plan plan = find(context, evaluations(kPlans));
    const auto best = context.incumbent().best();
    EXPECT_EQ(best.has_value(), context.evaluations() > 0) << on->name;
    if (!best) continue;
    const PlanOutcome outcome = evaluate_plan(on->input, best->plan, on->cluster, on->on.devices);
    EXPECT_EQ(outcome.value, best->value) << on->name;
    EXPECT_EQ(outcome.moved, best->moved) << on->name;
    expect_same(plan, best->plan, on->name);
    EXPECT_LE(context.incumbent().bound().step, best->value.step) << on->name;
  }
}

TEST_P(PartitionConformance, describes_itself) {
  EXPECT_FALSE(info().family.empty());
  EXPECT_FALSE(info().summary.empty());
  EXPECT_FALSE(info().reference.empty());
  EXPECT_EQ(info().summary.find('\n'), std::string::npos);
  for (const OptionInfo& option : info().options) {
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.range.empty()) << option.name;
  }
}

TEST_P(PartitionConformance, divides_alike_with_its_options_left_out_and_with_their_defaults) {
  OptionValues defaults;
  for (const OptionInfo& option : info().options) {
    defaults.emplace_back(option.name, option.default_value);
  }
  const MethodSpec spec{GetParam(), defaults};
  EXPECT_EQ(MethodSpec::parse(spec.to_string()).options, defaults);
  const Case& on = case_named("rnn_on_two");
  expect_same(find(on, evaluations(kPlans), 1, defaults), find(on, evaluations(kPlans)), on.name);
}

// "1 to 10" at both ends; both values of a flag.
std::pair<std::string, std::string> ends_of(const OptionInfo& option) {
  if (option.type == "flag") return {"true", "false"};
  const std::size_t split = option.range.find(" to ");
  EXPECT_NE(split, std::string::npos) << option.name << ": " << option.range;
  return {option.range.substr(0, split), option.range.substr(split + 4)};
}

TEST_P(PartitionConformance, divides_with_every_option_at_both_ends_of_its_range) {
  for (const OptionInfo& option : info().options) {
    const auto [low, high] = ends_of(option);
    for (const std::string& value : {low, high}) {
      for (const char* name : {"rnn_on_two_machines", "rnn_with_no_room", "odd_on_four"}) {
        SCOPED_TRACE(fmt::format("{}={}", option.name, value));
        const Case& on = case_named(name);
        expect_valid(on, find(on, evaluations(kPlans), 1, {{option.name, value}}));
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
}

TEST_P(PartitionConformance, refuses_values_outside_an_options_range) {
  for (const OptionInfo& option : info().options) {
    const auto [low, high] = ends_of(option);
    expect_refused({{option.name, ""}});
    expect_refused({{option.name, "no such value"}});
    expect_refused({{option.name, "nan"}});
    if (option.type == "flag") continue;
    expect_refused({{option.name, fmt::format("{:.0f}", std::strtod(low.c_str(), nullptr) - 1)}});
    expect_refused(
        {{option.name, fmt::format("{:.0f}", std::strtod(high.c_str(), nullptr) * 2 + 1)}});
  }
}

TEST_P(PartitionConformance, refuses_options_that_it_does_not_have) {
  expect_refused({{"no_such_option", "1"}});
}

INSTANTIATE_TEST_SUITE_P(AllMethods, PartitionConformance, testing::ValuesIn(method_keys()),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Names are what people type; a renamed method breaks their commands.
TEST(PartitionRegistry, has_the_methods_of_the_documentation) {
  EXPECT_EQ(method_keys(),
            (std::vector<std::string>{"all-row", "data-parallel", "equal-chop", "fsdp",
                                      "model-parallel", "one-weird-trick", "spartan", "zero",
                                      "optcnn", "search", "recursive-by-time", "tofu"}));
}

TEST(PartitionRegistry, refuses_a_method_that_does_not_exist) {
  for (const std::string& key : method_keys()) {
    try {
      all_partition_methods().make({key + "x", {}});
      ADD_FAILURE() << "there is a method " << key << "x";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOption);
      EXPECT_NE(std::string(error.what()).find("'" + key + "'"), std::string::npos)
          << "the nearest key is not named: " << error.what();
    }
  }
}

}  // namespace
}  // namespace emplace
