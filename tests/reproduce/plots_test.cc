// What is drawn, on runs that are written down here.
#include "reproduce/plots.h"

#include <set>

#include <gtest/gtest.h>

#include "zoo/published.h"

namespace emplace::bench {
namespace {

using Curve = std::vector<std::pair<double, double>>;

// The last step that a curve has at so much spent; 0 before its first.
double at(const Curve& curve, double spent) {
  double step = 0;
  for (const auto& [x, y] : curve) {
    if (x <= spent) step = y;
  }
  return step;
}

TEST(Plots, show_the_best_so_far_over_what_was_spent) {
  const std::string model = "RNNLM on 4 of today";
  RunStore store("");
  for (int seed = 1; seed <= 3; ++seed) {
    LearningRun run{.step = 400'000,
                    .fits = true,
                    .evaluations = 600,
                    .agent_seconds = 60,
                    .measured_seconds = 3000,
                    .history = {}};
    run.history = {{100, 30, 500, 800'000, true}, {300, 40, 2000, 400'000 + 100'000 * seed, true}};
    store.keep(run_key(workload(model), "random", seed, {}), run);
  }
  LearningRun plain{.step = 500'000, .fits = true, .evaluations = 1, .history = {}};
  plain.history = {{1, 0.1, 0, 500'000, true}};
  store.keep(run_key(workload(model), "single", 1, {}), plain);
  const Evidence evidence({{model, {nullptr, 1'000'000}}}, store, 3, {});
  const Curve placements = curve_of(evidence, model, "random", Spent::kPlacements);
  EXPECT_DOUBLE_EQ(at(placements, 90), 0);
  EXPECT_DOUBLE_EQ(at(placements, 200), 0.8);
  EXPECT_DOUBLE_EQ(at(placements, 600), 0.6);  // the seeds' median
  const Curve agent = curve_of(evidence, model, "random", Spent::kAgentSeconds);
  EXPECT_DOUBLE_EQ(at(agent, 29), 0);
  EXPECT_DOUBLE_EQ(at(agent, 35), 0.8);
  EXPECT_DOUBLE_EQ(at(agent, 60), 0.6);
  const Curve real = curve_of(evidence, model, "random", Spent::kMeasuredSeconds);
  EXPECT_DOUBLE_EQ(at(real, 1000), 0.8);
  EXPECT_DOUBLE_EQ(at(real, 3000), 0.6);
  EXPECT_TRUE(curve_of(evidence, model, "single", Spent::kMeasuredSeconds).empty());
}

TEST(Plots, never_rise_where_seeds_find_what_fits_at_different_times) {
  const std::string model = "RNNLM on 4 of today";
  RunStore store("");
  const std::vector<std::pair<int, int>> found{
      {100, 1000}, {100, 1100}, {100, 1900}, {300, 1800}, {300, 2000}};
  for (int seed = 1; seed <= 5; ++seed) {
    const auto [evaluations, step] = found[static_cast<std::size_t>(seed - 1)];
    LearningRun run{.step = step * 1000, .fits = true, .evaluations = 600, .history = {}};
    run.history = {{evaluations, 1, 1, run.step, true}};
    store.keep(run_key(workload(model), "random", seed, {}), run);
  }
  const Evidence evidence({{model, {nullptr, 1'000'000}}}, store, 5, {});
  const Curve curve = curve_of(evidence, model, "random", Spent::kPlacements);
  EXPECT_DOUBLE_EQ(at(curve, 200), 1.9);
  EXPECT_DOUBLE_EQ(at(curve, 600), 1.8);
}

// Whatever the papers on placement ran on is in some claim, in both versions.
TEST(Claims, are_of_all_published_workloads) {
  for (const Version version : {Version::kPaper, Version::kEmplace}) {
    const Entrants entrants = entrants_of({{version, claims(version), grids(version)}});
    for (const zoo::PublishedWorkload& one : zoo::published_workloads()) {
      // Tofu's are partitioned; GNMT-4 of 40 words would take hours, and has 16 here.
      const std::string name = one.system + ": " + one.workload;
      if (one.system == "Tofu" || name == "Mars: GNMT-4") continue;
      EXPECT_TRUE(entrants.contains(name)) << name;
    }
    for (const auto& [name, placers] : entrants) EXPECT_EQ(workload(name).name, name);
  }
}

// Which can be asked for in a list.
TEST(Claims, have_keys_of_their_own) {
  for (const Version version : {Version::kPaper, Version::kEmplace}) {
    std::set<std::string> keys;
    for (const Claim& claim : claims(version)) EXPECT_TRUE(keys.insert(claim.key).second);
    for (const Grid& grid : grids(version)) EXPECT_TRUE(keys.insert(grid.key).second);
    for (const std::string& key : keys) EXPECT_EQ(key.find(','), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace emplace::bench
