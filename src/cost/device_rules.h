// Where a user wants parts of a model, or does not: pins and what is forbidden.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <emplace/problem.h>

#include "base/ids.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace emplace {

// What the rules leave to each op.
class RuledDevices {
 public:
  // Throws an Error when a rule matches no op or no device, or rules leave an op no device.
  RuledDevices(const Graph& graph, const Cluster& cluster, std::vector<DeviceRule> rules);

  bool empty() const { return rules_.empty(); }
  const std::vector<DeviceId>& devices_of(OpId op) const { return sets_[set_of_op_[op]].devices; }
  // The rules that concern the op, to go into a message; empty when there are none.
  std::string describe(OpId op) const;

 private:
  // The rules that an op is under, and what they leave.
  struct RuleSet {
    std::vector<std::uint32_t> rules;
    std::vector<DeviceId> devices;
  };

  void apply(const Graph& graph, const Cluster& cluster, std::uint32_t rule,
             const std::vector<bool>& concerned);

  std::vector<DeviceRule> rules_;
  std::vector<RuleSet> sets_;
  std::vector<std::uint32_t> set_of_op_;
};

}  // namespace emplace
