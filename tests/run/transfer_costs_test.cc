// What transfers cost beside the link is learned from steps that a made-up machine "executes": the
// simulator with links whose latency is longer than the profile says.
#include "run/transfer_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "run/contention.h"
#include "support/shared_core.h"

namespace emplace {
namespace {

constexpr Nanoseconds kMicrosecond = 1000;

// Pairs of chains that a search divides between two devices although each step of one needs the
// other's tensor of the step before.
std::shared_ptr<const Graph> entangled_chains(int length) {
  GraphBuilder builder("chains");
  std::vector<TensorId> last;
  for (int i = 0; i < length; ++i) {
    std::vector<TensorId> next;
    for (const char* chain : {"a", "b"}) {
      OpSpec op{.name = fmt::format("{}{}", chain, i), .type = "compute"};
      if (!last.empty()) op.inputs = last;
      op.time_us = {{"cpu", Decimal{100, 0}}};
      next.push_back(builder.add(op, {{.bytes = 4}})[0]);
    }
    last = next;
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

Profile profile_of(const ClusterSpec& cluster) {
  Profile profile{.graph = entangled_chains(12), .cluster = cluster};
  for (const LinkRule& rule : cluster.links) {
    profile.links.push_back({.from = rule.from,
                             .to = rule.to,
                             .fit = {.latency = rule.latency, .bandwidth = rule.bandwidth},
                             .measured = !rule.throttled,
                             .throttled = rule.throttled});
  }
  return profile;
}

// Links that take this much longer than the profile says; the machine is this much slower.
ExecutedStep machine_with(const Profile& profile, Nanoseconds beside, double slower = 1) {
  ClusterSpec cluster = profile.cluster;
  for (LinkRule& rule : cluster.links) rule.latency += beside;
  const auto problem =
      compile(profile.graph, std::make_shared<const Cluster>(cluster), CostMode::kMeasured);
  return [problem, slower](const Problem&, const Placement& placement,
                           const Schedule& schedule) -> std::optional<Nanoseconds> {
    const auto step = static_cast<double>(predict(problem, placement, schedule).step);
    return static_cast<Nanoseconds>(slower * step);
  };
}

ClusterSpec two_devices() {
  return shared_core_spec(2, {.bandwidth = 5'000'000'000, .latency = kMicrosecond});
}

constexpr TransferCostSettings kQuick{.rounds = 3, .seconds = 0.2};

TEST(TransferCosts, latency_rises_until_proposals_are_predicted_as_they_are_executed) {
  Profile profile = profile_of(two_devices());
  learn_transfer_costs(machine_with(profile, 30 * kMicrosecond), kQuick, profile);
  const Nanoseconds added = profile.links[0].added;
  // A prediction within two percent of the step is left alone.
  EXPECT_GE(added, 20 * kMicrosecond);
  EXPECT_LE(added, 31 * kMicrosecond);
  EXPECT_EQ(profile.cluster.links[0].latency, kMicrosecond + added);
  EXPECT_EQ(profile.links[0].fit.latency, kMicrosecond) << "what was measured stays";
}

TEST(TransferCosts, nothing_is_added_where_predictions_are_right) {
  Profile profile = profile_of(two_devices());
  learn_transfer_costs(machine_with(profile, 0), kQuick, profile);
  EXPECT_EQ(profile.links[0].added, 0);
  EXPECT_EQ(profile.cluster.links[0].latency, kMicrosecond);
}

TEST(TransferCosts, a_slow_moment_of_the_machine_is_not_taken_for_transfers) {
  Profile profile = profile_of(two_devices());
  learn_transfer_costs(machine_with(profile, 0, 1.5), kQuick, profile);
  EXPECT_EQ(profile.links[0].added, 0);
}

TEST(TransferCosts, links_that_are_slowed_down_stay_as_they_are) {
  ClusterSpec cluster = two_devices();
  for (LinkRule& rule : cluster.links) rule.throttled = true;
  Profile profile = profile_of(cluster);
  learn_transfer_costs(machine_with(profile, 30 * kMicrosecond), kQuick, profile);
  EXPECT_EQ(profile.links[0].added, 0);
  EXPECT_EQ(profile.cluster.links[0].latency, kMicrosecond);
}

TEST(TransferCosts, a_step_that_fails_teaches_nothing) {
  Profile profile = profile_of(two_devices());
  const ExecutedStep fails = [](const Problem&, const Placement&, const Schedule&) {
    return std::optional<Nanoseconds>();
  };
  learn_transfer_costs(fails, kQuick, profile);
  EXPECT_EQ(profile.links[0].added, 0);
}

}  // namespace
}  // namespace emplace
