// A reduced problem laid out for the search: costs as doubles, each edge's table from both ends,
// what is forbidden as one cost that no allowed choice can reach.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "selection/reduced_problem.h"

namespace emplace {

class CostTables {
 public:
  struct Arc {
    std::int32_t other;
    std::int32_t reverse;  // the arc from `other` back to here
    const double* table;   // row-major over (strategy here, strategy of `other`)
  };

  explicit CostTables(const ReducedProblem& problem);
  CostTables(const CostTables&) = delete;
  CostTables& operator=(const CostTables&) = delete;

  const ReducedProblem& problem() const { return problem_; }
  std::int32_t num_nodes() const { return problem_.num_nodes(); }
  std::int32_t size(std::int32_t node) const { return problem_.nodes[node].size(); }
  // Of the node's first strategy among all.
  std::size_t first(std::int32_t node) const { return first_[node]; }
  std::size_t num_strategies() const { return first_.back(); }
  std::span<const double> cost(std::int32_t node) const {
    return {cost_.data() + first_[node], first_[node + 1] - first_[node]};
  }
  std::int32_t first_arc(std::int32_t node) const { return first_arc_[node]; }
  std::int32_t num_arcs() const { return first_arc_.back(); }
  std::span<const Arc> arcs(std::int32_t node) const {
    return {arcs_.data() + first_arc_[node],
            static_cast<std::size_t>(first_arc_[node + 1] - first_arc_[node])};
  }
  std::int32_t degree(std::int32_t node) const { return first_arc_[node + 1] - first_arc_[node]; }
  // Of all tables.
  std::size_t num_entries() const { return num_entries_; }
  std::int32_t num_times() const { return static_cast<std::int32_t>(problem_.slack.size()); }
  // A choice that costs this or more is forbidden.
  double forbidden() const { return forbidden_; }

  // Adds what the node's strategies pay for their usage, at `before[t]`: the sum of all prices
  // before time t.
  void add_usage_prices(std::int32_t node, std::span<const double> before, double* cost) const;

 private:
  const ReducedProblem& problem_;
  std::vector<std::size_t> first_;
  std::vector<double> cost_;
  std::vector<std::int32_t> first_arc_;
  std::vector<Arc> arcs_;
  // Tables that are alike are kept once.
  std::vector<std::unique_ptr<double[]>> tables_;
  std::size_t num_entries_ = 0;
  double forbidden_ = 0;
};

}  // namespace emplace
