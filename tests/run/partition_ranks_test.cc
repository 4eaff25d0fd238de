#include "run/partition_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

#include "cluster/presets.h"

#include "tensor/methods/all.h"
#include "tensor/prepare.h"
#include "tensor/topology.h"

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

}  // namespace
}  // namespace emplace
