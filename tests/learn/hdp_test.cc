// HDP as it is put together: what its defaults and its paper's settings make of the parts.
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placer/run.h"

#include "placers/all.h"

#include "support/timed_graph.h"

namespace emplace::learn {
namespace {

// Chains side by side, which exchange something now and then.
std::shared_ptr<const Problem> chains(int length) {
  TimedGraph graph;
  std::vector<TensorId> last;
  for (int chain = 0; chain < 4; ++chain) {
    last.push_back(graph.op("begin" + std::to_string(chain), 20, {}, 100'000));
  }
  for (int i = 0; i < length; ++i) {
    for (std::size_t chain = 0; chain < last.size(); ++chain) {
      std::vector<TensorId> inputs{last[chain]};
      if (i % 5 == 0 && chain > 0) inputs.push_back(last[chain - 1]);
      const std::string name = "op" + std::to_string(i) + "_" + std::to_string(chain);
      last[chain] = graph.op(name, 10 + i % 7, inputs, 100'000);
    }
  }
  return compile_timed(graph.build(), gpu_cluster(4));
}

std::vector<TrainingPoint> rounds_of(const std::string& spec, std::int64_t evaluations) {
  PlaceContext context(chains(150));
  std::vector<TrainingPoint> points;
  context.learning().on_round = [&](const TrainingPoint& point) { points.push_back(point); };
  Budget budget;
  budget.evaluations = evaluations;
  run_placer(all_placers(), context, {.placer = MethodSpec::parse(spec)}, budget);
  return points;
}

TEST(Hdp, an_update_leaves_nearly_all_ops_in_their_groups) {
  const std::vector<TrainingPoint> points = rounds_of("hdp", 100);
  ASSERT_GE(points.size(), 3U);
  for (const TrainingPoint& point : points) {
    ASSERT_TRUE(point.groups_changed.has_value());
    EXPECT_LE(*point.groups_changed, 0.03) << "round " << point.round;
    ASSERT_TRUE(point.groups_used.has_value());
    EXPECT_GE(*point.groups_used, 70) << "round " << point.round;
    EXPECT_LE(*point.groups_used, 80) << "round " << point.round;
  }
}

TEST(Hdp, grouper_learns_at_a_rate_of_its_own) {
  double changed = 0;
  double still = 0;
  for (const TrainingPoint& point : rounds_of("hdp(width=8,grouper_lr=1)", 60)) {
    changed += *point.groups_changed;
  }
  for (const TrainingPoint& point : rounds_of("hdp(width=8,grouper_lr=1e-9)", 60)) {
    still += *point.groups_changed;
  }
  EXPECT_GT(changed, 0.1);
  EXPECT_LE(still, 0.01);  // but for what is between two slices
}

TEST(Hdp, begins_with_any_groups_in_its_papers_settings) {
  const std::vector<TrainingPoint> points = rounds_of("hdp(preset=paper,width=16)", 12);
  ASSERT_EQ(points.size(), 3U);  // of four placements
  // Of 80 groups, as many as 604 ops would be in by chance, or nearly.
  EXPECT_GT(*points.front().groups_used, 70);
  EXPECT_GT(points.front().entropy, 3) << "nearly log 80";
  EXPECT_GT(*points.front().groups_changed, 0.5);
}

TEST(Hdp, has_its_papers_settings_as_a_preset) {
  std::vector<std::string> differing;
  for (const OptionInfo& option : all_placers().info("hdp").options) {
    ASSERT_FALSE(option.paper.empty()) << option.name;
    if (option.paper != option.default_value) differing.push_back(option.name + "=" + option.paper);
  }
  EXPECT_THAT(differing, ::testing::UnorderedElementsAre(
                             "preset=paper", "features=types_and_shapes", "first_groups=weights",
                             "blocks=0", "sees_group=false", "samples=4", "lr=0.1", "lr_decay=0.95",
                             "grouper_lr=0", "grouper_clip=0", "mask_after=500", "shortage=signal",
                             "noisy_rounds=750", "width=512"));
}

}  // namespace
}  // namespace emplace::learn
