#include "run/whole_modules.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fork.h"

namespace emplace {
namespace {

// The branches and what joins them are one module, so that it takes one device to keep it whole.
std::shared_ptr<const Graph> fork_of_one_module() {
  TimedGraph graph("fork");
  const TensorId left = graph.add({.name = "net.left", .type = "mm", .module = "net"}, 100);
  const TensorId right = graph.add({.name = "net.right", .type = "mm", .module = "net"}, 100);
  graph.add({.name = "net.join", .type = "add", .inputs = {left, right}, .module = "net"}, 10, 4);
  return graph.build();
}

Budget budget_of(std::int64_t evaluations) {
  Budget budget;
  budget.evaluations = evaluations;
  return budget;
}

struct ForkProblems {
  std::shared_ptr<const Problem> whole;
  std::shared_ptr<const Problem> op_by_op;
};

ForkProblems compiled_fork(Bytes memory = kUnlimited) {
  const auto cluster = std::make_shared<const Cluster>(gpu_cluster(2, memory));
  const auto graph = fork_of_one_module();
  return {compile(keep_whole(graph, Granularity::kModule), cluster), compile(graph, cluster)};
}

struct WholeAnswer {
  Assessment answer;
  RunResult run;
};

WholeAnswer placed_whole(const ForkProblems& fork) {
  const SubsetProblems problems(fork.whole, StepTime{});
  Portfolio portfolio(problems, {.runs = make_runs("auto", "own"), .budget = budget_of(50)});
  const PortfolioResult result = portfolio.run();
  return {assess(assessor_of(problems, result), problems, result.best()), result.best()};
}

WholeModules compared(const ForkProblems& fork, const WholeAnswer& found, const Budget& budget) {
  const OpByOp ops(fork.op_by_op, found.answer, found.run);
  Portfolio portfolio(ops.problems(), ops.request(budget));
  const PortfolioResult result = portfolio.run();
  return ops.compare(Granularity::kModule, &result);
}

TEST(WholeModules, cost_what_op_by_op_would_save) {
  const ForkProblems fork = compiled_fork();
  const WholeAnswer found = placed_whole(fork);
  EXPECT_EQ(found.answer.time(), kForkOnOne) << "one module, one device";
  const WholeModules whole = compared(fork, found, budget_of(200));
  ASSERT_TRUE(whole.op_by_op);
  EXPECT_EQ(whole.op_by_op->step, kForkOnTwo);
  EXPECT_EQ(whole.placer, "auto");
  EXPECT_EQ(whole.parts, 1);
  EXPECT_NEAR(*whole.cost(), 210.0 / 111 - 1, 1e-9);
  EXPECT_GE(*whole.most(), *whole.cost()) << "the bound allows no less";
}

TEST(WholeModules, cost_at_most_what_the_bound_says_where_nothing_was_searched) {
  const ForkProblems fork = compiled_fork();
  const WholeAnswer found = placed_whole(fork);
  const OpByOp ops(fork.op_by_op, found.answer, found.run);
  const WholeModules whole = ops.compare(Granularity::kModule, nullptr);
  EXPECT_FALSE(whole.op_by_op);
  EXPECT_FALSE(whole.cost());
  EXPECT_NEAR(*whole.most(), 210.0 / 110 - 1, 1e-9);
}

TEST(WholeModules, op_by_op_is_never_worse_than_the_answer_itself) {
  const ForkProblems fork = compiled_fork();
  WholeAnswer found = placed_whole(fork);
  found.run.run.placer = MethodSpec::parse("random");  // as quick, and bad on two devices
  const WholeModules whole = compared(fork, found, {});
  EXPECT_EQ(whole.placer, "random");
  EXPECT_LE(whole.op_by_op->step, kForkOnOne);
}

TEST(SharedBudget, leaves_most_to_the_answer_and_no_more_than_there_is) {
  Budget nine;
  nine.seconds = 9;
  const SharedBudget seconds = share_with_ops(nine);
  EXPECT_DOUBLE_EQ(*seconds.whole.seconds + *seconds.op_by_op.seconds, 9);
  EXPECT_GT(*seconds.whole.seconds, *seconds.op_by_op.seconds);
  const SharedBudget evaluations = share_with_ops(budget_of(100));
  EXPECT_EQ(*evaluations.whole.evaluations + *evaluations.op_by_op.evaluations, 100);
  EXPECT_FALSE(evaluations.whole.seconds);
}

}  // namespace
}  // namespace emplace
