// Systems as their papers have them run, and differ from ours in what they say.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "placer/run.h"

#include "placers/all.h"

#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

// Two branches of a training step beside each other.
std::shared_ptr<const Problem> two_branches() {
  TimedGraph graph;
  for (const char* branch : {"a", "b"}) {
    const std::string name = branch;
    const TensorId weight = graph.parameter(name + ".w");
    const TensorId forward = graph.op(name + ".f", 100, {weight}, 50'000);
    const TensorId backward = graph.backward(name + ".b", 200, {forward, weight});
    graph.update(name + ".u", 10, {weight, backward});
  }
  return compile_timed(graph.build(), gpu_cluster(2));
}

class Published : public testing::TestWithParam<const char*> {
 protected:
  static RunResult place(const std::string& spec, std::int64_t evaluations) {
    PlaceContext context(two_branches());
    Budget budget;
    budget.evaluations = evaluations;
    return run_placer(all_placers(), context, {.placer = MethodSpec::parse(spec)}, budget);
  }

  // The mean cost of every round.
  static std::vector<double> costs_of(const std::string& spec) {
    PlaceContext context(two_branches());
    std::vector<double> costs;
    context.learning().on_round = [&](const TrainingPoint& point) {
      costs.push_back(point.mean_cost);
    };
    Budget budget;
    budget.evaluations = 200;
    run_placer(all_placers(), context, {.placer = MethodSpec::parse(spec)}, budget);
    return costs;
  }
};

TEST_P(Published, runs_with_the_papers_settings) {
  const RunResult found = place(std::string(GetParam()) + "(preset=paper)", 200);
  EXPECT_LE(found.evaluations, 200);
  EXPECT_TRUE(found.evaluation.fits());
  EXPECT_EQ(found.evaluation.step, 310'000) << "each branch on a device of its own";
}

TEST_P(Published, learns_otherwise_than_ours) {
  const std::string key = GetParam();
  const std::vector<double> paper = costs_of(key + "(preset=paper)");
  ASSERT_FALSE(paper.empty());
  EXPECT_EQ(paper, costs_of(key + "(preset=paper)"));
  EXPECT_NE(paper, costs_of(key));
}

INSTANTIATE_TEST_SUITE_P(All, Published, testing::Values("colocrl", "placeto", "post", "spotlight"),
                         [](const auto& system) { return std::string(system.param); });

}  // namespace
}  // namespace emplace::learn
