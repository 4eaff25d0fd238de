// Every change that a placement's value, or a bound, may depend on changes the fingerprint.
#include "cost/problem_fingerprint.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "graph/graph_builder.h"

#include "support/tiny_graphs.h"

namespace emplace {
namespace {

std::uint64_t fingerprint_of(Graph graph, ClusterSpec cluster, const CompileOptions& options = {}) {
  Fingerprint fingerprint;
  add_problem(fingerprint, *compile(std::make_shared<const Graph>(std::move(graph)),
                                    std::make_shared<const Cluster>(std::move(cluster)), options));
  return fingerprint.value();
}

TEST(ProblemFingerprint, differs_with_all_that_a_cluster_says) {
  const ClusterSpec whole = two_equal().spec();
  const std::vector<std::function<void(ClusterSpec&)>> changes{
      [](ClusterSpec&) {},
      [](ClusterSpec& spec) { spec.devices[1].memory = 1 << 30; },
      [](ClusterSpec& spec) { spec.devices[1].gap = 5; },
      [](ClusterSpec& spec) {
        spec.devices[1].slowdown = {2, 0};
      },
      [](ClusterSpec& spec) { spec.links[0].bandwidth += 1; },
      [](ClusterSpec& spec) { spec.links[0].latency += 1; },
      [](ClusterSpec& spec) { spec.links[0].hold += 1; },
      [](ClusterSpec& spec) { spec.links[0].channel = "shared by all"; },
      [](ClusterSpec& spec) { spec.links[0].channel = "unlimited"; },
      [](ClusterSpec& spec) { spec.links[0].multicast = !spec.links[0].multicast; },
      // Of one ordered pair alone.
      [](ClusterSpec& spec) {
        LinkRule rule = spec.links[0];
        rule.from = spec.devices[1].name;
        rule.to = spec.devices[0].name;
        rule.latency += 1;
        spec.links.push_back(rule);
      },
  };
  std::set<std::uint64_t> known;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ClusterSpec spec = whole;
    changes[i](spec);
    EXPECT_TRUE(known.insert(fingerprint_of(diamond(), spec)).second) << "change " << i;
  }
}

TEST(ProblemFingerprint, differs_with_rules_and_edges) {
  const ClusterSpec cluster = two_equal().spec();
  const std::uint64_t plain = fingerprint_of(diamond(), cluster);
  const std::string op(diamond().op_name(diamond().num_ops() - 1));
  const CompileOptions pinned{
      .rules = {DeviceRule{DeviceRule::Kind::kPin, op, {cluster.devices[1].name}}}};
  EXPECT_NE(fingerprint_of(diamond(), cluster, pinned), plain);
  EXPECT_NE(fingerprint_of(fork_join(), cluster), plain);

  // Of equal ops, of which another waits.
  const auto waiting = [&](const std::string& waits_for) {
    GraphBuilder builder("waiting");
    for (const char* name : {"a", "b"}) {
      builder.add_op({.name = name, .type = "compute", .time_us = {{"fast", {1, 0}}}});
    }
    builder.add_op(
        {.name = "c", .type = "compute", .time_us = {{"fast", {1, 0}}}, .after = {waits_for}});
    return fingerprint_of(std::move(builder).build(), cluster);
  };
  EXPECT_NE(waiting("a"), waiting("b"));
  EXPECT_EQ(waiting("a"), waiting("a"));
}

}  // namespace
}  // namespace emplace
