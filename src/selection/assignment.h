// A choice for every node of a reduced problem, with its cost and its usage at every time kept up
// to date under changes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "selection/cost_tables.h"

namespace emplace {

struct NodeChange {
  std::int32_t node;
  std::int32_t strategy;
};

// What changes would do.
struct ChangeEffect {
  std::int64_t cost = 0;     // more, or less, of what is not forbidden
  std::int32_t blocked = 0;  // how many more, or fewer, forbidden costs
  double excess = 0;         // of usage beyond the limit, summed over times: more, or less
  std::int32_t begin = 0;    // the times that they touch
  std::int32_t end = 0;
};

class Assignment {
 public:
  Assignment(const CostTables& tables, std::vector<std::int32_t> choice);

  std::span<const std::int32_t> choice() const { return choice_; }
  std::int32_t operator[](std::int32_t node) const { return choice_[node]; }
  // Of all that is not forbidden, and how many that are.
  std::int64_t cost() const { return cost_; }
  std::int32_t blocked() const { return blocked_; }
  double excess() const { return excess_; }
  bool feasible() const { return blocked_ == 0 && excess_ <= 0; }
  std::span<const std::int64_t> usage() const { return usage_; }

  // The effect of changes of different nodes; their usage is left in `changed_usage` for the times
  // that they touch.
  ChangeEffect effect(std::span<const NodeChange> changes);
  std::span<const std::int64_t> changed_usage() const { return changed_; }
  // Makes the changes whose effect was asked for last.
  void apply(std::span<const NodeChange> changes, const ChangeEffect& effect);
  void reset(std::span<const std::int32_t> choice);

 private:
  std::int64_t edge_cost(const ReducedEdge& edge, std::span<const std::int32_t> choice) const;
  void cost_effect(std::span<const NodeChange> changes, ChangeEffect& effect);
  void usage_effect(std::span<const NodeChange> changes, ChangeEffect& effect);

  const CostTables& tables_;
  std::vector<std::int32_t> choice_;
  std::vector<std::int32_t> next_;  // the choice after the changes
  std::vector<std::int64_t> usage_;
  std::vector<std::int64_t> change_;  // differences from one time to the next
  std::vector<std::int64_t> changed_;
  std::int64_t cost_ = 0;
  std::int32_t blocked_ = 0;
  double excess_ = 0;
};

}  // namespace emplace
