// Policies that were trained elsewhere, through the placers that begin with them.
#include "learn/general/general_method.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"

#include "placer/run.h"

#include "placers/all.h"

#include "learn/general/agent.h"
#include "learn/general/attention_policy.h"
#include "learn/general/blocks.h"
#include "learn/general/kinds.h"
#include "learn/general/policy_file.h"
#include "learn/general/sequence_policy.h"
#include "learn/general/shipped.h"
#include "learn/learners/ppo.h"
#include "learn/sampled_gradient.h"
#include "learn/train/state.h"
#include "learn/units/groupings.h"
#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

using ::testing::HasSubstr;

// A file for the length of a test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              ("emplace-policy-" + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Branches that can run side by side.
std::shared_ptr<const Problem> fork_and_join(Bytes memory = kUnlimited) {
  TimedGraph graph;
  const TensorId first = graph.op("first", 50, {});
  std::vector<TensorId> results;
  for (int i = 0; i < 4; ++i) {
    results.push_back(graph.add({.name = "part" + std::to_string(i),
                                 .type = "compute",
                                 .inputs = {first},
                                 .persistent_bytes = 100'000},
                                100 + i, 2000));
  }
  graph.op("last", 50, results);
  return compile_timed(graph.build(), gpu_cluster(3, memory));
}

Budget limited_to(std::int64_t evaluations) {
  Budget budget;
  budget.evaluations = evaluations;
  return budget;
}

RunResult place(const std::shared_ptr<const Problem>& problem, const std::string& spec,
                std::uint64_t seed = 1, std::int64_t evaluations = 2000) {
  PlaceContext context(problem);
  RunResult result =
      run_placer(all_placers(), context, {.placer = MethodSpec::parse(spec), .seed = seed},
                 limited_to(evaluations));
  check_placement(*problem, result.result.placement);
  return result;
}

std::string error_of(const std::string& spec) {
  try {
    place(fork_and_join(), spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class TrainedPolicy : public ::testing::TestWithParam<std::string> {
 protected:
  std::string spec(const std::string& more = "") const {
    return GetParam() + "(policy=shipped" + more + ")";
  }
};

TEST_P(TrainedPolicy, places_with_few_evaluations) {
  const RunResult result = place(fork_and_join(), spec());
  EXPECT_GT(result.evaluations, 0);
  EXPECT_LE(result.evaluations, 150);
  EXPECT_TRUE(result.evaluation.fits());
}

TEST_P(TrainedPolicy, places_the_same_for_the_same_seed) {
  const auto problem = fork_and_join();
  const RunResult first = place(problem, spec(), 7);
  const RunResult again = place(problem, spec(), 7);
  EXPECT_EQ(first.result.placement, again.result.placement);
  EXPECT_EQ(first.evaluations, again.evaluations);
}

TEST_P(TrainedPolicy, makes_its_proposals_fit) {
  const auto problem = fork_and_join(250'000);  // half of what all parts need
  ASSERT_FALSE(Evaluator(problem).evaluate(Placement(problem->num_ops(), 0)).fits());
  EXPECT_TRUE(place(problem, spec()).evaluation.fits());
}

TEST_P(TrainedPolicy, is_also_read_from_a_file) {
  const TemporaryFile file(shipped_policy(GetParam()));
  const auto problem = fork_and_join();
  const RunResult by_file = place(problem, GetParam() + "(policy=" + file.path() + ")");
  EXPECT_EQ(by_file.result.placement, place(problem, spec()).result.placement);
}

// With all parameters zero every device is as good as every other.
TEST_P(TrainedPolicy, that_knows_nothing_is_helped_by_the_slices_it_began_with) {
  const auto problem = fork_and_join();
  Rng rng(1);
  const GeneralNetwork network = PolicyFile(shipped_policy(GetParam()), "shipped").network();
  const GeneralAgentPtr agent = make_agent(GetParam(), *problem, network, "cpu", rng);
  std::vector<torch::Tensor> zeros;
  for (const torch::Tensor& value : agent->parameters().values()) {
    zeros.push_back(torch::zeros_like(value));
  }
  agent->parameters().assign(zeros);
  const TemporaryFile file(policy_bytes(GetParam(), network, agent->parameters(), "zeros"));
  const std::string empty = GetParam() + "(policy=" + file.path() + ",proposals=1,prior=";
  const Nanoseconds with_prior = place(problem, empty + "true)").evaluation.step;
  const Nanoseconds alone = place(problem, empty + "false)").evaluation.step;
  // Placeto comes to its placement by single moves, and keeps the best of all that it passes.
  if (GetParam() == "placeto") {
    EXPECT_LE(with_prior, alone);
  } else {
    EXPECT_LT(with_prior, alone);
  }
}

TEST_P(TrainedPolicy, evaluates_more_when_it_is_fine_tuned) {
  const auto problem = fork_and_join();
  const RunResult at_once = place(problem, spec());
  const RunResult tuned = place(problem, spec(",finetune=2"));
  EXPECT_GE(tuned.evaluations, at_once.evaluations + 2);
  EXPECT_LT(tuned.evaluations, 2000) << "two rounds are enough";
  EXPECT_LE(tuned.evaluation.step, at_once.evaluation.step);
}

// Cells whose parameter every step reads: cut by steps, each device has a copy of them all.
std::shared_ptr<const Problem> unrolled(Bytes memory) {
  TimedGraph graph;
  std::vector<TensorId> parameters;
  for (int cell = 0; cell < 4; ++cell) {
    parameters.push_back(graph.parameter("w" + std::to_string(cell), 10'000));
  }
  TensorId last = graph.op("first", 1, {}, 10);
  for (int i = 0; i < 24; ++i) {
    last = graph.op("step" + std::to_string(i), 10, {last, parameters[i % 4]}, 10);
  }
  return compile_timed(graph.build(), gpu_cluster(2, memory));
}

TEST(Blocks, are_parts_of_the_units_and_lean_elsewhere) {
  const auto problem = unrolled(kUnlimited);
  const UnitGraph units = group_by_colocation(*problem);
  const Blocks blocks(units);
  Rng rng(3);
  std::set<std::size_t> sizes;
  for (int i = 0; i < 300; ++i) {
    const std::vector<UnitId> block = blocks.draw(rng);
    const std::set<UnitId> once(block.begin(), block.end());
    ASSERT_FALSE(block.empty());
    EXPECT_EQ(once.size(), block.size());
    EXPECT_LE(block.size(), units.size() / 2);
    EXPECT_LT(*once.rbegin(), units.size());
    sizes.insert(block.size());
    const std::vector<float> leaning =
        leaning_elsewhere(block, std::vector<DeviceId>(units.size(), 1), {0, 1, 2}, 4, rng);
    EXPECT_EQ(leaning[1], 0);
    EXPECT_EQ(leaning[3], 0);
    EXPECT_GT(leaning[0] + leaning[2], 0);
  }
  EXPECT_GT(sizes.size(), 3U);
}

TEST(Blocks, are_drawn_around_a_unit) {
  const auto problem = unrolled(kUnlimited);
  const UnitGraph units = group_by_colocation(*problem);
  const Blocks blocks(units);
  Rng rng(3);
  std::set<std::size_t> sizes;
  for (int i = 0; i < 500; ++i) {
    const auto unit = static_cast<UnitId>(rng.below(units.size()));
    const std::vector<UnitId> block = blocks.draw_around(unit, rng);
    const std::set<UnitId> once(block.begin(), block.end());
    EXPECT_TRUE(once.contains(unit));
    EXPECT_EQ(once.size(), block.size());
    EXPECT_LE(block.size(), units.size() / 2);
    sizes.insert(block.size());
  }
  EXPECT_GT(sizes.size(), 2);
}

// What is closed stays, and is certain; what is open is scored as it was drawn, leaning included.
TEST(GeneralPolicies, draw_parts_of_a_placement_anew) {
  const auto problem = unrolled(kUnlimited);
  const UnitGraph units = group_by_colocation(*problem);
  Rng rng(4);
  const GeneralNetwork network{.width = 8};
  for (const GeneralPolicyPtr& policy :
       {general_attention_policy(group_by_colocation(*problem), network, "cpu", rng, 5),
        general_sequence_policy(group_by_colocation(*problem), network, "cpu", rng)}) {
    const Placement placement(problem->num_ops(), 0);
    torch::Tensor open = torch::zeros({3, units.size()}, torch::kBool);
    open[1].narrow(0, 2, 9).fill_(true);
    open[2].narrow(0, 0, 4).fill_(true);
    const torch::Tensor leanings = torch::tensor({{0.0F, 50.0F}, {0.0F, 50.0F}, {50.0F, 0.0F}});
    const Samples samples = policy->redraw(placement, open, leanings, rng);
    EXPECT_EQ(policy->placement(samples, 0), placement);
    EXPECT_EQ(policy->placement(samples, 2), placement);
    const std::vector<DeviceId> moved = units.contract(policy->placement(samples, 1));
    for (UnitId unit = 0; unit < units.size(); ++unit) {
      EXPECT_EQ(moved[unit], unit >= 2 && unit < 11 ? 1U : 0U) << unit;
    }
    const Samples drawn = policy->redraw(placement, open, torch::zeros({3, 2}), rng);
    const Scores scores = policy->score(drawn);
    EXPECT_LT((scores.log_probs - drawn.log_probs).abs().max().item<double>(), 1e-4);
    EXPECT_LT(scores.log_probs[0].abs().max().item<double>(), 1e-6);
    EXPECT_GT(scores.log_probs[1].abs().max().item<double>(), 1e-3);
    const torch::Tensor one = policy->score(drawn.slice(1, 1)).log_probs;
    EXPECT_LT((one - drawn.log_probs.narrow(0, 1, 1)).abs().max().item<double>(), 1e-4);
  }
}

// Four ops in a row, of which the two in the middle are decided about anew, leaning to a device.
TEST(GeneralPolicies, redrawn_parts_teach_the_gradient_of_the_expected_cost) {
  TimedGraph graph;
  TensorId at = graph.op("a", 300, {}, 200'000);
  for (const char* name : {"b", "c", "d"}) at = graph.op(name, 200, {at}, 150'000);
  const auto problem = compile_timed(graph.build(), gpu_cluster(2));
  Rng rng(4);
  const GeneralNetwork network{.width = 8};
  const torch::Tensor open = torch::tensor({{false, true, true, false}});
  const torch::Tensor leanings = torch::tensor({{0.0F, 1.5F}});
  const CostSettings cost{.shortage = Shortage::kPenalty};
  constexpr double kRate = 1;
  constexpr std::int64_t kBatch = 200;
  for (const GeneralPolicyPtr& policy :
       {general_attention_policy(group_by_colocation(*problem), network, "cpu", rng),
        general_attention_policy(group_by_colocation(*problem), network, "cpu", rng, 2),
        general_sequence_policy(group_by_colocation(*problem), network, "cpu", rng)}) {
    {
      const torch::NoGradGuard no_gradients;
      for (torch::Tensor& tensor : policy->parameters().tensors()) {
        tensor.add_(normals(tensor.sizes().vec(), rng), 0.1);
      }
    }
    const Placement placement{0, 1, 0, 1};
    const LearnerPtr learner = ppo(*problem, {.batch = kBatch,
                                              .epochs = 1,
                                              .optimizer = {.adam = false, .learning_rate = kRate},
                                              .cost = cost,
                                              .normalize_advantage = false});
    const Enumeration all(*policy, *problem, cost, policy->redraw(placement, open, leanings, rng));
    const std::vector<torch::Tensor> exact = all.gradient(*policy);
    Estimates estimates;
    for (int i = 0; i < 20; ++i) {
      const Samples samples =
          policy->redraw(placement, open.expand({kBatch, -1}), leanings.expand({kBatch, -1}), rng);
      estimates.add(step_of(*policy, *problem, *learner, samples, kRate), exact);
    }
    estimates.expect_unbiased();
  }
}

TEST_P(TrainedPolicy, refines_a_placement) {
  const auto problem = unrolled(kUnlimited);
  Rng rng(6);
  const PolicyFile file(shipped_policy(GetParam()), "shipped");
  const GeneralAgentPtr agent = make_agent(GetParam(), *problem, file.network(), "cpu", rng);
  file.load_into(agent->parameters());
  PlaceContext context(problem);
  Environment environment(context, limited_to(10'000), "test");
  // Steps in turn over the devices: each waits for a transfer.
  Placement bad(problem->num_ops());
  for (OpId op = 0; op < problem->num_ops(); ++op) bad[op] = static_cast<DeviceId>(op % 2);
  Solution from{.placement = bad, .value = context.evaluator().evaluate(bad)};
  // An order that changes nothing here, but is of this placement alone.
  from.schedule.priorities.assign(problem->num_ops(), 1);
  const Evaluation first = from.value;
  for (int i = 0; i < 4; ++i) {
    const Evaluation before = from.value;
    TrainingPoint point;
    ASSERT_TRUE(agent->refine(from, environment, rng, point));
    EXPECT_FALSE(before < from.value);
    EXPECT_EQ(context.evaluator().evaluate(from.placement), from.value);
    EXPECT_EQ(from.schedule.fifo(), from.placement != bad);
    EXPECT_GT(point.mean_cost, 0);
    const std::vector<torch::Tensor> gradient = agent->gradient();
    EXPECT_EQ(gradient.size(), agent->parameters().named().size());
  }
  ASSERT_TRUE(context.incumbent().best());
  EXPECT_LT(context.incumbent().best()->value.step, first.step);
}

// Short ops and the head of a chain share a device. Unless they have an order of their own, the
// head runs last, and no placement is as good as the chain beside the short ops.
struct LateHead {
  std::shared_ptr<const Problem> problem;
  Solution in_order;
};
LateHead late_head() {
  TimedGraph graph;
  for (int i = 0; i < 6; ++i) {
    graph.add({.name = "short" + std::to_string(i), .type = "compute", .colocate = "one"}, 200);
  }
  TensorId at = graph.add({.name = "head", .type = "compute", .colocate = "one"}, 50);
  for (int i = 0; i < 8; ++i) at = graph.op("tail" + std::to_string(i), 150, {at});
  LateHead result{.problem = compile_timed(graph.build(), gpu_cluster(2)), .in_order = {}};
  for (OpId op = 0; op < result.problem->num_ops(); ++op) {
    result.in_order.placement.push_back(op > 6 ? 1 : 0);
    result.in_order.schedule.priorities.push_back(op == 6 ? 1 : 0);
  }
  return result;
}

// What is drawn is drawn where the step loses time in the order that it is valued in.
TEST(Refining, looks_at_the_step_in_the_order_of_the_evaluator) {
  const LateHead late = late_head();
  const Placement& placement = late.in_order.placement;
  const auto drawn = [&](const std::string& kind, std::string_view scheduler, Schedule schedule) {
    PlaceContext context(late.problem);
    context.order_by(std::string(scheduler));
    std::vector<Placement> result;
    context.evaluator().measure_with([&](const Placement& asked, const ReadyOrder&) {
      result.push_back(asked);
      return Evaluation{.step = 1000, .overflow = 0};  // none is better than another
    });
    Budget budget = limited_to(1000);
    budget.threads = 1;
    Environment environment(context, budget, "test");
    Rng rng(6);
    const PolicyFile file(shipped_policy(kind), "shipped");
    const GeneralAgentPtr agent = make_agent(kind, *late.problem, file.network(), "cpu", rng);
    file.load_into(agent->parameters());
    Solution from{.placement = placement,
                  .schedule = std::move(schedule),
                  .value = Evaluation{.step = 1000, .overflow = 0}};
    TrainingPoint point;
    EXPECT_TRUE(agent->refine(from, environment, rng, point));
    return result;
  };
  for (const std::string kind : {"gdp", "mars"}) {
    const std::vector<Placement> in_order =
        drawn(kind, kOwnSchedule, make_schedule(*late.problem, placement, "pct"));
    EXPECT_EQ(drawn(kind, "pct", {}), in_order) << kind;
    EXPECT_NE(drawn(kind, kOwnSchedule, {}), in_order) << kind;
  }
}

TEST_P(TrainedPolicy, insists_on_fitting) {
  EXPECT_TRUE(place(unrolled(21'000), spec(), 1, 5000).evaluation.fits());
}

TEST_P(TrainedPolicy, obeys_the_budget) {
  const auto problem = fork_and_join(250'000);
  for (const std::int64_t evaluations : {1, 5, 20}) {
    // What a search begins with, and the check of the answer, are not the policy's.
    EXPECT_LE(place(problem, spec(",finetune=3"), 1, evaluations).evaluations, evaluations + 2);
  }
}

// Saved at the end; `resume` goes on from what another saved.
std::string checkpoint_of(const std::shared_ptr<const Problem>& problem, const std::string& spec,
                          std::int64_t evaluations, const std::string& resume = {},
                          std::vector<Solution> starts = {}) {
  PlaceContext context(problem, {}, std::move(starts));
  std::string saved;
  context.learning().save = [&](std::string_view bytes) { saved = bytes; };
  context.learning().resume = resume;
  context.learning().resume_name = "checkpoint";
  run_placer(all_placers(), context, {.placer = MethodSpec::parse(spec), .seed = 5},
             limited_to(evaluations));
  return saved;
}

TEST_P(TrainedPolicy, goes_on_from_a_checkpoint_as_if_never_stopped) {
  const auto problem = fork_and_join();
  const std::string run = spec(",finetune=3");
  const StateReader whole(checkpoint_of(problem, run, 100'000), "whole");
  ASSERT_EQ(whole.integer("rounds"), 3);
  // Somewhere within the rounds.
  const std::int64_t at_once = place(problem, spec(), 5).evaluations;
  const std::int64_t half = (at_once + whole.integer("evaluations")) / 2;
  const std::string stopped = checkpoint_of(problem, run, half);
  const std::int64_t rounds = StateReader(stopped, "stopped").integer("rounds");
  ASSERT_GT(rounds, 0);
  ASSERT_LT(rounds, 3);
  const StateReader parts(checkpoint_of(problem, run, 100'000, stopped), "parts");
  for (const std::string name : {"rounds", "rng", "best", "evaluations", "devices"}) {
    EXPECT_EQ(parts.integers(name), whole.integers(name)) << name;
  }
  Rng rng(1);
  const PolicyFile file(shipped_policy(GetParam()), "shipped");
  const GeneralAgentPtr agent = make_agent(GetParam(), *problem, file.network(), "cpu", rng);
  bool learned = false;
  file.load_into(agent->parameters());
  for (const auto& [name, tensor] : agent->parameters().named()) {
    EXPECT_TRUE(parts.tensor("policy." + name).equal(whole.tensor("policy." + name))) << name;
    learned = learned || !whole.tensor("policy." + name).equal(tensor);
  }
  EXPECT_TRUE(learned);
}

TEST_P(TrainedPolicy, goes_on_from_an_order_of_ops_too) {
  const LateHead late = late_head();
  const std::string run = spec(",finetune=4");
  const auto saved_after = [&](std::int64_t evaluations, const std::string& resume) {
    return checkpoint_of(late.problem, run, evaluations, resume, {late.in_order});
  };
  const std::string undisturbed = saved_after(100'000, {});
  const StateReader whole(undisturbed, "whole");
  ASSERT_EQ(whole.integer("rounds"), 4);
  // The start was never beaten.
  ASSERT_EQ(whole.integers("from_priorities"), late.in_order.schedule.priorities);
  const std::string one =
      checkpoint_of(late.problem, spec(",finetune=1"), 100'000, {}, {late.in_order});
  const std::string stopped = saved_after(StateReader(one, "one").integer("evaluations") + 1, {});
  ASSERT_EQ(StateReader(stopped, "stopped").integer("rounds"), 1);
  const std::string resumed = saved_after(100'000, stopped);
  const StateReader parts(resumed, "parts");
  for (const std::string name : {"rounds", "rng", "evaluations", "from", "from_priorities"}) {
    EXPECT_EQ(parts.integers(name), whole.integers(name)) << name;
  }
  Rng rng(1);
  const PolicyFile file(shipped_policy(GetParam()), "shipped");
  const GeneralAgentPtr agent = make_agent(GetParam(), *late.problem, file.network(), "cpu", rng);
  for (const auto& [name, tensor] : agent->parameters().named()) {
    EXPECT_TRUE(parts.tensor("policy." + name).equal(whole.tensor("policy." + name))) << name;
  }
}

TEST(NumbersOfDevices, have_the_one_without_cpus) {
  const auto numbers = [](int gpus, int cpus) {
    ClusterSpec spec = gpu_cluster(gpus);
    spec.kinds.push_back(spec.kinds[0]);
    spec.kinds.back().name = "cpu-test";
    for (int i = 0; i < cpus; ++i) {
      spec.devices.push_back({.name = "cpu" + std::to_string(i), .kind = "cpu-test"});
    }
    return numbers_of_devices(Cluster(std::move(spec)));
  };
  using Numbers = std::vector<std::size_t>;
  EXPECT_EQ(numbers(6, 1), (Numbers{7, 6, 1, 2, 3, 4}));
  EXPECT_EQ(numbers(4, 1), (Numbers{5, 4, 1, 2, 3}));
  EXPECT_EQ(numbers(9, 2), (Numbers{11, 9, 1, 2, 3, 4, 8}));
  EXPECT_EQ(numbers(6, 0), (Numbers{6, 1, 2, 3, 4}));
  EXPECT_EQ(numbers(0, 2), (Numbers{2, 1}));
  EXPECT_EQ(numbers(1, 0), Numbers{1});
}

TEST_P(TrainedPolicy, is_needed_for_fine_tuning) {
  EXPECT_THAT(error_of(GetParam() + "(finetune=3)"), HasSubstr("policy"));
}

TEST_P(TrainedPolicy, that_is_missing_is_named) {
  EXPECT_THAT(error_of(GetParam() + "(policy=/nowhere/my.policy)"),
              HasSubstr("/nowhere/my.policy"));
}

TEST_P(TrainedPolicy, that_is_another_file_is_named) {
  const TemporaryFile file("all is well\n");
  EXPECT_THAT(error_of(GetParam() + "(policy=" + file.path() + ")"),
              HasSubstr(file.path() + ": not a policy"));
}

// They would be answers of a policy of Mars.
TEST(MarsOfAnotherDesign, has_no_trained_policy) {
  EXPECT_THAT(error_of("mars(policy=shipped,design=grouper_placer)"), HasSubstr("design=mars"));
  EXPECT_THAT(error_of("mars(policy=shipped,design=encoder_placer)"), HasSubstr("design=mars"));
}

TEST(PlacetoFromAGivenStart, is_given_one) {
  const auto problem = fork_and_join();
  EXPECT_THAT(error_of("placeto(start=given)"), HasSubstr("start=given needs a placement"));
  const Solution start{.placement = Placement(problem->num_ops(), 1)};
  EXPECT_NE(checkpoint_of(problem, "placeto(start=given,workers=2)", 60, {}, {start}), "");
  EXPECT_EQ(error_of("placeto(start=given,warm_start=expert,workers=2)"), "no error");
  EXPECT_EQ(error_of("placeto(policy=shipped,start=given)"), "no error");
}

INSTANTIATE_TEST_SUITE_P(Kinds, TrainedPolicy, ::testing::ValuesIn(general_kinds()),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace emplace::learn
