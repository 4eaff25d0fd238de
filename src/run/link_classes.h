// The pairs of kinds that rules of links join: what a transfer costs depends on them.
#pragma once

#include <cstddef>
#include <vector>

#include "cluster/cluster.h"

namespace emplace {

struct LinkClass {
  std::size_t rule = 0;  // of the cluster
  LinkRule own = {};     // the rule, for this pair of kinds alone
};

// In the order of their rules, those of one rule together. Rules that join no devices have none.
std::vector<LinkClass> link_classes(const ClusterSpec& spec);

// The last rule that covers the pair; the number of rules where none does.
std::size_t rule_of_link(const ClusterSpec& spec, DeviceId from, DeviceId to);

}  // namespace emplace
