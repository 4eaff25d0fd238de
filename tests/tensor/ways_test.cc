// Which ways to cut are weighed, of the many that there are, and that finding them takes no longer
// than it has to.
#include "tensor/ways.h"

#include <ctime>

#include <gtest/gtest.h>

#include "tensor/partition_setting.h"
#include "tensor/step_bound.h"
#include "tensor/work_bound.h"

#include "zoo/registry.h"

namespace emplace {
namespace {

Graph model_of(const std::string& text) {
  return zoo::build_model(text);
}

double used_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

const tdl::Region kWhole{{0, 8}, {0, 2}, {0, 5}};

// Those with nothing on the second level are left out, so that not everything is accepted.
Cuttable some_cuts(const Workers& workers) {
  return {kWhole, {0, 1, 2}, workers, [](const Cuts& cuts) { return cuts[1] != kUncut; }};
}

TEST(Ways, the_first_of_them_are_those_that_all_begin_with) {
  const Workers workers({2, 2, 2});
  const std::vector<Cuts> all = ways_to_cut(some_cuts(workers), true);
  ASSERT_GT(all.size(), 10U);
  for (const std::size_t most : {std::size_t{1}, std::size_t{5}, all.size() + 1}) {
    const std::vector<Cuts> first = ways_to_cut(some_cuts(workers), true, {}, most);
    ASSERT_EQ(first.size(), std::min(most, all.size()));
    EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin()));
  }
}

TEST(Ways, those_along_one_dimension_are_all_there_are) {
  const Workers workers({2, 2, 2});
  const Cuttable what{kWhole, {0, 1, 2}, workers};
  std::vector<Cuts> expected;
  for (const Cuts& cuts : ways_to_cut(what, true)) {
    if (cuts == Cuts(3, cuts[0])) expected.push_back(cuts);
  }
  EXPECT_EQ(ways_along_one(what), expected);
  EXPECT_EQ(ways_along_one(what, 1),
            (std::vector<Cuts>{{kUncut, 0, 0}, {kUncut, 2, 2}, Cuts(3, kUncut)}));
}

TEST(Ways, those_near_others_are_all_that_differ_on_one_level) {
  const Workers workers({2, 2, 2});
  const std::set<Cuts> known{{0, 0, 0}, {1, 2, kUncut}};
  std::vector<Cuts> expected;
  for (const Cuts& cuts : ways_to_cut(some_cuts(workers), true)) {
    for (const Cuts& other : known) {
      int different = 0;
      for (std::size_t level = 0; level < 3; ++level) different += cuts[level] != other[level];
      if (different > 1) continue;
      expected.push_back(cuts);
      break;
    }
  }
  EXPECT_EQ(ways_near(some_cuts(workers), known), expected);
}

// Six levels of convolutions have tens of thousands of ways; data parallelism looks at a few.
TEST(Ways, many_devices_take_no_longer_than_their_pieces) {
  const Setting setting(model_of("alexnet:batch=64"), 64);
  const double began = used_seconds();
  const PlanSolution found = setting.find("data-parallel");
  EXPECT_LT(used_seconds() - began, 10);
  EXPECT_GT(found.moved, 0);
}

// Where joint searches cannot weigh all ways, they find those near the best known one by one.
TEST(Ways, a_joint_search_of_many_devices_ends) {
  const Setting setting(model_of("stacked-rnn:layers=1,hidden=64,sequence=2,batch=64"), 32);
  Budget budget;
  budget.evaluations = 3;
  const PlanSolution found = setting.find("search", budget);
  EXPECT_LE(found.value.step, setting.find("data-parallel").value.step);
}

// Two examples for each of eight groups of two devices: the groups are divided on the first levels.
TEST(Ways, fewer_examples_than_devices_are_divided_as_far_as_they_go) {
  const Setting setting(model_of("stacked-rnn:layers=1,hidden=64,sequence=2,batch=4"), 8);
  const PlanSolution found = setting.find("data-parallel");
  for (TensorId tensor = 0; tensor < setting.graph->num_tensors(); ++tensor) {
    if (setting.graph->role(setting.graph->producer(tensor)) != OpRole::kInput) continue;
    EXPECT_EQ(found.plan.tensors[tensor], (Cuts{kUncut, 0, 0}));
  }
  const PlanSolution in_parts = setting.find("fsdp");
  for (TensorId tensor = 0; tensor < setting.graph->num_tensors(); ++tensor) {
    if (setting.graph->role(setting.graph->producer(tensor)) != OpRole::kParameter) continue;
    const Cuts& cuts = in_parts.plan.tensors[tensor];
    EXPECT_EQ(std::count(cuts.begin(), cuts.end(), kUncut), 0)
        << "a weight is not in parts on all levels: "
        << setting.graph->op_name(setting.graph->producer(tensor));
  }
}

// Without time the bound is what rates alone allow, and never more than with it.
TEST(StepBound, takes_no_more_time_than_there_is) {
  const Setting setting(model_of("stacked-rnn:layers=1,hidden=64,sequence=2,batch=64"), 4);
  Budget none;
  none.seconds = 0;
  const StepBound quick =
      divided_step_bound(setting.input, *setting.problem, setting.on, {}, &none);
  EXPECT_EQ(quick.sending, SendingInBound::kNoTime);
  EXPECT_GE(quick.step + 1, divided_rate_bound(*setting.problem, setting.on));
  EXPECT_LT(quick.step, divided_step_bound(setting.input, *setting.problem, setting.on).step);
}

}  // namespace
}  // namespace emplace
