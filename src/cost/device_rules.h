// Where a user wants parts of a model, or does not: pins and what is forbidden.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

namespace emplace {

struct DeviceRule {
  enum class Kind { kPin, kForbid };

  Kind kind = Kind::kPin;
  // A pattern, in which "*" stands for any text, of the names of ops or of their modules
  // (graph/modules.h). A module's name also stands for the modules in it.
  std::string ops;
  // Patterns of devices' names or kinds.
  std::vector<std::string> devices;

  // "encoder.*=gpu0" or "encoder.*=gpu0,gpu1". Throws an Error when it is not like that.
  static DeviceRule parse(Kind kind, const std::string& text);
  // For messages: pin "encoder.*=gpu0".
  std::string to_string() const;
};

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
