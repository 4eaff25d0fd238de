// Named graphs and clusters small enough to reason about by hand. Every compute op has a measured
// time for both kinds of device that the tiny clusters have: "slow" takes twice as long as "fast".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "cost/problem.h"

namespace emplace {

Graph one_op();
Graph chain();
Graph diamond();
Graph fork_join();
Graph two_chains();
Graph disconnected();
Graph nothing_takes_time();
Graph view_chain();
Graph only_control();
Graph big_parameters();
Graph training_step();
Graph named_shards();
// Its ends are pinned to the cluster's first and last device.
Graph pinned_ends(const Cluster& cluster);

Cluster one_device();
Cluster two_equal();
Cluster two_far_apart();
Cluster three_unequal();
Cluster four_on_a_bus();
Cluster two_tight();
Cluster two_with_no_room();

struct TinyCase {
  std::string name;  // "diamond_on_two_equal"
  std::shared_ptr<const Problem> problem;
};

// Every tiny graph on every tiny cluster.
const std::vector<TinyCase>& tiny_cases();
// Throws std::logic_error when there is no such case.
const TinyCase& tiny_case(const std::string& name);

}  // namespace emplace
