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

bool is_alone(const Placement& placement) {
  return std::all_of(placement.begin(), placement.end(),
                     [&](DeviceId device) { return device == placement.front(); });
}

// Steps of several devices that are executed take this many times as long, in turn.
ExecutedStep restless(const ExecutedStep& machine, std::vector<double> times) {
  return [machine, times, next = std::make_shared<std::size_t>(0)](
             const Problem& problem, const Placement& placement,
             const Schedule& schedule) -> std::optional<Nanoseconds> {
    const auto step = machine(problem, placement, schedule);
    if (is_alone(placement)) return step;
    return static_cast<Nanoseconds>(times[(*next)++ % times.size()] * static_cast<double>(*step));
  };
}

ClusterSpec two_devices() {
  return shared_core_spec(2, {.bandwidth = 5'000'000'000, .latency = kMicrosecond});
}

const TransferCostSettings kQuick{.rounds = 6, .seconds = 0.2};

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

TEST(TransferCosts, may_be_much_more_than_a_link_s_latency) {
  Profile profile = profile_of(two_devices());
  learn_transfer_costs(machine_with(profile, 5000 * kMicrosecond), kQuick, profile);
  EXPECT_GE(profile.links[0].added, 4500 * kMicrosecond);
  EXPECT_LE(profile.links[0].added, 5200 * kMicrosecond);
  ASSERT_TRUE(profile.transfers);
  EXPECT_TRUE(profile.transfers->near) << "the search stays on one device then";
  EXPECT_EQ(profile.transfers->proposals, 2);
}

TEST(TransferCosts, it_is_said_when_there_are_too_few_proposals) {
  Profile profile = profile_of(two_devices());
  std::vector<int> told;
  const TransferCostSettings one{
      .rounds = 1, .seconds = 0.2, .proposed = [&](int number) { told.push_back(number); }};
  learn_transfer_costs(machine_with(profile, 30 * kMicrosecond), one, profile);
  ASSERT_TRUE(profile.transfers);
  EXPECT_EQ(profile.transfers->proposals, 1);
  EXPECT_FALSE(profile.transfers->near);
  EXPECT_LT(profile.transfers->error, -0.1);
  EXPECT_GT(profile.links[0].added, 0) << "what the last proposal showed is learned all the same";
  EXPECT_EQ(told, std::vector<int>{1});
}

// A device of each of three kinds, joined by one rule.
ClusterSpec three_kinds() {
  ClusterSpec spec = shared_core_spec(3, {.bandwidth = 5'000'000'000, .latency = kMicrosecond});
  spec.devices[1].kind = "p100";
  spec.devices[2].kind = "v100";
  return spec;
}

// Ops that a CPU is best at take turns with those that one of the others is better at.
std::shared_ptr<const Graph> chain_of_favourites() {
  GraphBuilder builder("favourites");
  std::optional<TensorId> last;
  const auto add = [&](const std::string& name, int cpu, int p100, int v100) {
    OpSpec op{.name = name, .type = "compute"};
    if (last) op.inputs = {*last};
    op.time_us = {{"cpu", Decimal{cpu, 0}}, {"p100", Decimal{p100, 0}}, {"v100", Decimal{v100, 0}}};
    last = builder.add(op, {{.bytes = 4}})[0];
  };
  for (int i = 0; i < 10; ++i) {
    add(fmt::format("cpu{}", i), 100, 400, 400);
    add(fmt::format("{}{}", i < 5 ? "p" : "v", i), i < 5 ? 130 : 200, i < 5 ? 100 : 400,
        i < 5 ? 400 : 100);
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

Nanoseconds cost_between(const Profile& profile, const std::string& from, const std::string& to) {
  for (const LinkProfile& link : profile.links) {
    if (link.from == from && link.to == to) return link.added;
  }
  return -1;
}

TEST(TransferCosts, each_pair_of_kinds_has_its_own) {
  Profile profile = profile_of(three_kinds());
  profile.graph = chain_of_favourites();
  Profile real = profile;
  const LinkRule rule = real.cluster.links[0];
  for (const auto& [from, to] : {std::pair("cpu", "p100"), std::pair("p100", "cpu")}) {
    real.cluster.links.push_back(rule);
    real.cluster.links.back().from = from;
    real.cluster.links.back().to = to;
    real.cluster.links.back().latency += 50 * kMicrosecond;
  }
  learn_transfer_costs(machine_with(real, 0), kQuick, profile);
  ASSERT_TRUE(profile.transfers);
  EXPECT_TRUE(profile.transfers->near);
  EXPECT_GE(cost_between(profile, "cpu", "p100"), 20 * kMicrosecond);
  EXPECT_LE(cost_between(profile, "cpu", "v100"), 5 * kMicrosecond);
  EXPECT_LE(cost_between(profile, "v100", "cpu"), 5 * kMicrosecond);
  ASSERT_EQ(profile.cluster.links.size(), profile.links.size());
  const Cluster written(profile.cluster);
  for (DeviceId from = 0; from < 3; ++from) {
    for (DeviceId to = 0; to < 3; ++to) {
      if (from == to) continue;
      const Nanoseconds added =
          cost_between(profile, written.device(from).kind, written.device(to).kind);
      EXPECT_EQ(written.link(from, to)->latency, kMicrosecond + added);
    }
  }
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

// Relative errors are never below -1, so their squares would say less of steps that take long.
TEST(TransferCosts, steps_of_a_restless_machine_do_not_pull_costs_down) {
  Profile profile = profile_of(two_devices());
  learn_transfer_costs(restless(machine_with(profile, 100 * kMicrosecond), {0.6, 1 / 0.6}),
                       {.rounds = 4, .seconds = 0.2}, profile);
  EXPECT_NEAR(static_cast<double>(profile.links[0].added), 100 * kMicrosecond, 10 * kMicrosecond);
}

TEST(TransferCosts, a_single_slow_execution_does_not_count) {
  Profile profile = profile_of(two_devices());
  learn_transfer_costs(restless(machine_with(profile, 30 * kMicrosecond), {1, 3, 1}), kQuick,
                       profile);
  EXPECT_GE(profile.links[0].added, 20 * kMicrosecond);
  EXPECT_LE(profile.links[0].added, 31 * kMicrosecond);
  EXPECT_TRUE(profile.transfers->near);
}

// The step on one device fails, as for want of memory; the machine's speed differs all the same.
TEST(TransferCosts, are_learned_on_devices_that_are_too_small_for_the_model) {
  Profile profile = profile_of(two_devices());
  const ExecutedStep machine = machine_with(profile, 30 * kMicrosecond, 1.5);
  const ExecutedStep small = [&](const Problem& problem, const Placement& placement,
                                 const Schedule& schedule) {
    return is_alone(placement) ? std::nullopt : machine(problem, placement, schedule);
  };
  TransferCostSettings settings = kQuick;
  settings.slower = [] { return 1.5; };
  learn_transfer_costs(small, settings, profile);
  EXPECT_GE(profile.links[0].added, 20 * kMicrosecond);
  EXPECT_LE(profile.links[0].added, 31 * kMicrosecond);
  EXPECT_TRUE(profile.transfers->near);
}

TEST(TransferCosts, links_that_are_slowed_down_stay_as_they_are) {
  ClusterSpec cluster = two_devices();
  for (LinkRule& rule : cluster.links) rule.throttled = true;
  Profile profile = profile_of(cluster);
  learn_transfer_costs(machine_with(profile, 30 * kMicrosecond), kQuick, profile);
  EXPECT_EQ(profile.links[0].added, 0);
  EXPECT_EQ(profile.cluster.links[0].latency, kMicrosecond);
  EXPECT_FALSE(profile.transfers);
}

TEST(TransferCosts, a_step_that_fails_teaches_nothing) {
  Profile profile = profile_of(two_devices());
  const ExecutedStep fails = [](const Problem&, const Placement&, const Schedule&) {
    return std::optional<Nanoseconds>();
  };
  learn_transfer_costs(fails, kQuick, profile);
  EXPECT_EQ(profile.links[0].added, 0);
  ASSERT_TRUE(profile.transfers);
  EXPECT_TRUE(profile.transfers->failed);
}

}  // namespace
}  // namespace emplace
