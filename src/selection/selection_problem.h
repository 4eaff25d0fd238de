// The strategy-selection problem (ASPLOS 2025 contest IOPDDL): one strategy for every node, so that
// node costs and edge costs add up to as little as possible, while the usages of the nodes that are
// alive at one time never add up to more than a limit. Integers throughout; built once, then read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace emplace {

// A cost that marks what must not be chosen; sums saturate here.
inline constexpr std::int64_t kForbidden = 1'000'000'000'000'000'000;

// Of two numbers from 0 to kForbidden; so is the result.
constexpr std::int64_t add_costs(std::int64_t a, std::int64_t b) {
  const std::int64_t sum = a + b;
  return sum < kForbidden ? sum : kForbidden;
}

class SelectionProblem {
 public:
  // Alive from `begin` up to, but not including, `end`.
  struct Interval {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool empty() const { return begin >= end; }
  };
  struct Edge {
    std::int32_t a = 0;
    std::int32_t b = 0;
  };

  // Costs and usages must be as many, at least one, and not negative; costs of kForbidden and more
  // forbid. Returns the node's number.
  std::int32_t add_node(std::span<const std::int64_t> costs, std::span<const std::int64_t> usages,
                        Interval alive);
  // For a node that uses nothing.
  std::int32_t add_node(std::span<const std::int64_t> costs);
  // `table` is row-major over (strategy of a, strategy of b). Several edges between two nodes add
  // up; of an edge from a node to itself the diagonal counts.
  void add_edge(std::int32_t a, std::int32_t b, std::span<const std::int64_t> table);
  void set_usage_limit(std::optional<std::int64_t> limit) { usage_limit_ = limit; }

  std::int32_t num_nodes() const { return static_cast<std::int32_t>(intervals_.size()); }
  std::int32_t num_edges() const { return static_cast<std::int32_t>(edges_.size()); }
  std::int32_t num_strategies(std::int32_t node) const {
    return static_cast<std::int32_t>(first_[node + 1] - first_[node]);
  }
  std::size_t total_strategies() const { return costs_.size(); }
  std::span<const std::int64_t> costs(std::int32_t node) const { return of_node(costs_, node); }
  std::span<const std::int64_t> usages(std::int32_t node) const { return of_node(usages_, node); }
  const Interval& interval(std::int32_t node) const { return intervals_[node]; }
  const Edge& edge(std::int32_t index) const { return edges_[index]; }
  std::span<const std::int64_t> table(std::int32_t edge) const {
    return {tables_.data() + first_entry_[edge], first_entry_[edge + 1] - first_entry_[edge]};
  }
  const std::optional<std::int64_t>& usage_limit() const { return usage_limit_; }

 private:
  std::span<const std::int64_t> of_node(const std::vector<std::int64_t>& values,
                                        std::int32_t node) const {
    return {values.data() + first_[node], first_[node + 1] - first_[node]};
  }

  std::vector<std::size_t> first_{0};  // of each node in costs_ and usages_
  std::vector<std::int64_t> costs_;
  std::vector<std::int64_t> usages_;
  std::vector<Interval> intervals_;
  std::vector<Edge> edges_;
  std::vector<std::size_t> first_entry_{0};  // of each edge in tables_
  std::vector<std::int64_t> tables_;
  std::optional<std::int64_t> usage_limit_;
};

struct SelectionValue {
  std::int64_t cost = kForbidden;
  std::int64_t peak = 0;  // the largest usage at any time; saturates at kForbidden
  bool feasible = false;  // nothing forbidden was chosen, and the peak is within the limit
};

// By the definition; `strategies` has one valid index a node.
SelectionValue evaluate(const SelectionProblem& problem, std::span<const std::int32_t> strategies);

}  // namespace emplace
