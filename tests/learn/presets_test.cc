// Systems as their papers have them, and where one system compares itself with another.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placer/run.h"

#include "placers/all.h"
#include "placers/learned/support/gdp_options.h"

#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

std::shared_ptr<const Problem> plain_chain_problem() {
  TimedGraph graph;
  TensorId at = graph.op("op0", 50, {});
  for (int i = 1; i < 8; ++i) {
    at = graph.op(std::string("op").append(std::to_string(i)), 50, {at}, 20'000);
  }
  return compile_timed(graph.build(), gpu_cluster(3));
}

// The mean cost of every round.
std::vector<double> costs_of(const std::string& spec) {
  PlaceContext context(plain_chain_problem());
  std::vector<double> costs;
  context.learning().on_round = [&](const TrainingPoint& point) {
    costs.push_back(point.mean_cost);
  };
  Budget budget;
  budget.evaluations = 80;
  run_placer(all_placers(), context, {.placer = MethodSpec::parse(spec)}, budget);
  return costs;
}

TEST(Gdp, draws_every_op_by_itself_as_published) {
  const GdpOptions paper = gdp_schema().read({{"preset", "paper"}});
  EXPECT_EQ(paper.network.neighbourhoods, 0);
  EXPECT_EQ(paper.network.coordinates, 0);
  EXPECT_EQ(paper.network.spread, 0);
  EXPECT_EQ(paper.network.features, Features::kTypesAndShapes);
  EXPECT_EQ(paper.network.width % paper.network.heads, 0);
  EXPECT_EQ(paper.ppo.kl_share, 0);
  EXPECT_EQ(paper.ppo.cost.shortage, Shortage::kSignal);
  EXPECT_FALSE(paper.restarts);
  EXPECT_GT(gdp_schema().read({}).network.neighbourhoods, 0);
}

TEST(Mars, compares_itself_with_gdp_as_that_is) {
  const std::vector<double> rival = costs_of("mars(design=encoder_placer,restarts=false)");
  ASSERT_GE(rival.size(), 3U);
  EXPECT_EQ(rival, costs_of("gdp(samples=20,epochs=4,lr=0.0003,baseline=0.9,restarts=false)"));
  EXPECT_NE(rival, costs_of("gdp(samples=20,epochs=4,lr=0.0003,baseline=0.9,restarts=false,"
                            "neighbourhoods=0)"));
  EXPECT_EQ(costs_of("mars(design=encoder_placer,preset=paper)"),
            costs_of("gdp(preset=paper,entropy=0.001)"));
}

TEST(Mars, compares_itself_with_hdp_as_that_is) {
  // The first placements, before anything is learned: those of the same network.
  const auto first = [](const std::string& spec) { return costs_of(spec).front(); };
  const double published = first("mars(design=grouper_placer,preset=paper)");
  EXPECT_EQ(published, first("hdp(preset=paper,learner=ppo,groupings=5,samples=4,noisy_rounds=0)"));
  EXPECT_NE(published, first("hdp(preset=paper,learner=ppo,groupings=5,samples=4,noisy_rounds=0,"
                             "features=all)"));
  EXPECT_NE(published, first("mars(design=grouper_placer,shortage=signal)"));
}

TEST(Mars, pre_training_changes_what_it_begins_with) {
  const std::string paper = "mars(preset=paper,width=8,encoder_width=8,";
  const std::vector<double> with = costs_of(paper + "pretrain=3)");
  ASSERT_GE(with.size(), 3U);
  EXPECT_NE(with, costs_of(paper + "pretrain=0)"));
}

}  // namespace
}  // namespace emplace::learn
