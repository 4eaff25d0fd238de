#include "run/partition_ranks.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "cluster/presets.h"

#include "tensor/methods/all.h"
#include "tensor/prepare.h"
#include "tensor/topology.h"

#include "dist/local_transport.h"
#include "support/error_text.h"
#include "zoo/registry.h"

namespace emplace {
namespace {

// A plan that fetches weights once a step, so that it has all that a plan can have.
struct Held {
  std::shared_ptr<const Graph> graph = std::make_shared<const Graph>(prepare_to_divide(
      zoo::build_model("bert-base:batch=4,sequence=4,layers=1,hidden=8,heads=2,vocabulary=17,"
                       "positions=8")));
  std::shared_ptr<const Problem> problem =
      compile(graph, std::make_shared<const Cluster>(preset_cluster("4xp100")));
  PartitionInput input{*graph};
  WorkerDevices on = workers_on(*problem);
  PartitionContext context{input, problem, on};
  Plan plan =
      all_partition_methods().make(MethodSpec::parse("fsdp(hold=true)"))->find(context, {}, Rng(1));
};

TEST(PlanBetweenRanks, IsTheSameOnTheOtherSide) {
  const Held held;
  ASSERT_THAT(held.plan.held, testing::Contains(1));
  const std::string bytes = plan_bytes(held.plan);
  dist::Reader reader(bytes);
  const Plan taken = take_plan(reader, held.input, held.on.workers);
  EXPECT_EQ(taken.method, held.plan.method);
  EXPECT_EQ(taken.tensors, held.plan.tensors);
  EXPECT_EQ(taken.ops, held.plan.ops);
  EXPECT_EQ(taken.held, held.plan.held);
}

TEST(PlanBetweenRanks, ThatMakesNoSenseIsAnError) {
  Held held;
  const auto text_of = [&] {
    const std::string bytes = plan_bytes(held.plan);
    return error_text([&] {
      dist::Reader reader(bytes);
      take_plan(reader, held.input, held.on.workers);
    });
  };
  held.plan.held.back() = 2;
  EXPECT_THAT(text_of(), testing::HasSubstr("whether they are held"));
  held.plan.held = {1};
  EXPECT_THAT(text_of(), testing::HasSubstr("1 tensors whether they are held"));
}

std::shared_ptr<const Problem> small_problem() {
  return compile(
      std::make_shared<const Graph>(zoo::build_model("bert-base:batch=4,sequence=4,layers=1,"
                                                     "hidden=8,heads=2,vocabulary=17,positions=8")),
      std::make_shared<const Cluster>(preset_cluster("2xp100")));
}

// Any rank can do any of them.
TEST(PartitionOnRanks, DependsOnTheSeedAndTheIslandsAlone) {
  const auto problem = small_problem();
  PartitionOptions options;
  options.budget.evaluations = 60;
  options.islands = 3;
  const PartitionAnswer alone = find_partition(problem, options);
  for (const int size : {2, 4}) {
    dist::LocalRanks ranks(size);
    std::vector<std::unique_ptr<dist::Member>> members;
    std::vector<std::thread> threads;
    for (int rank = 1; rank < size; ++rank) {
      members.push_back(
          std::make_unique<dist::Member>(ranks.take(rank), dist::PostOptions{}, [] {}));
      threads.emplace_back(
          [&, member = members.back().get()] { serve_partition(problem, options, *member); });
    }
    {
      dist::Crew crew(ranks.take(0), {});
      const PartitionAnswer shared = find_partition_on_ranks(problem, options, {}, crew);
      EXPECT_EQ(shared.plan.tensors, alone.plan.tensors) << size;
      EXPECT_EQ(shared.plan.ops, alone.plan.ops) << size;
      EXPECT_EQ(shared.chosen.step, alone.chosen.step) << size;
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// A plan of another method, seed or cost is not an answer to what rank 0 was asked.
TEST(PartitionOnRanks, OfWhichOneIsAskedForSomethingElseIsAnError) {
  const auto problem = small_problem();
  PartitionOptions first;
  first.method = "search";
  first.budget.evaluations = 20;
  std::vector<PartitionOptions> others(3, first);
  others[0].method = "tofu";
  others[1].seed = 2;
  others[2].overlap_slowdown = 1.5;
  for (const PartitionOptions& other : others) {
    dist::LocalRanks ranks(2);
    dist::Member member(ranks.take(1), {}, [] {});
    std::thread thread([&] { serve_partition(problem, other, member); });
    {
      dist::Crew crew(ranks.take(0), {});
      EXPECT_THAT(error_text([&] { find_partition_on_ranks(problem, first, {}, crew); }),
                  testing::HasSubstr("asked for something else"));
    }
    thread.join();
  }
}

}  // namespace
}  // namespace emplace
