#include "selection/cost_tables.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "selection/selection_problem.h"

namespace emplace {
namespace {

std::int64_t largest_allowed(const std::vector<std::int64_t>& costs) {
  std::int64_t largest = 0;
  for (const std::int64_t cost : costs) {
    if (cost < kForbidden) largest = std::max(largest, cost);
  }
  return largest;
}

std::size_t hash_of(const std::vector<std::int64_t>& values) {
  std::uint64_t hash = values.size();
  for (const std::int64_t value : values) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

// Twice what everything together can cost.
double out_of_reach(const ReducedProblem& problem) {
  double total = 1e6;
  for (const ReducedNode& node : problem.nodes) {
    total += static_cast<double>(largest_allowed(node.cost));
  }
  for (const ReducedEdge& edge : problem.edges) {
    total += static_cast<double>(largest_allowed(edge.table));
  }
  return 2 * total;
}

}  // namespace

CostTables::CostTables(const ReducedProblem& problem)
    : problem_(problem), forbidden_(out_of_reach(problem)) {
  const auto as_double = [&](std::int64_t cost) {
    return cost >= kForbidden ? forbidden_ : static_cast<double>(cost);
  };
  first_.push_back(0);
  first_arc_.push_back(0);
  for (std::int32_t i = 0; i < num_nodes(); ++i) {
    for (const std::int64_t cost : problem.nodes[i].cost) cost_.push_back(as_double(cost));
    first_.push_back(cost_.size());
    first_arc_.push_back(first_arc_.back() + static_cast<std::int32_t>(problem.edges_of[i].size()));
  }
  arcs_.resize(first_arc_.back());
  std::vector<std::int32_t> next(first_arc_.begin(), first_arc_.end() - 1);
  std::unordered_multimap<std::size_t, std::pair<const ReducedEdge*, const double*>> known;
  for (const ReducedEdge& edge : problem.edges) {
    const std::size_t rows = size(edge.a);
    const std::size_t columns = size(edge.b);
    num_entries_ += rows * columns;
    const double* forward = nullptr;
    const std::size_t key = hash_of(edge.table) ^ columns;
    const auto [begin, end] = known.equal_range(key);
    for (auto at = begin; at != end && forward == nullptr; ++at) {
      const ReducedEdge& other = *at->second.first;
      const bool alike = static_cast<std::size_t>(size(other.b)) == columns;
      if (alike && other.table == edge.table) forward = at->second.second;
    }
    if (forward == nullptr) {
      auto& table = tables_.emplace_back(std::make_unique<double[]>(2 * rows * columns));
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
          const double cost = as_double(edge.table[i * columns + j]);
          table[i * columns + j] = cost;
          table[rows * columns + j * rows + i] = cost;
        }
      }
      forward = table.get();
      known.emplace(key, std::pair(&edge, forward));
    }
    const double* backward = forward + rows * columns;
    const std::int32_t here = next[edge.a]++;
    const std::int32_t there = next[edge.b]++;
    arcs_[here] = {edge.b, there, forward};
    arcs_[there] = {edge.a, here, backward};
  }
}

void CostTables::add_usage_prices(std::int32_t node, std::span<const double> before,
                                  double* cost) const {
  const auto count = static_cast<std::size_t>(size(node));
  for (const UsagePiece& piece : problem_.nodes[node].pieces) {
    const double price = before[piece.end] - before[piece.begin];
    if (price <= 0) continue;
    for (std::size_t s = 0; s < count; ++s) {
      cost[s] += price * static_cast<double>(piece.usage[s]);
    }
  }
}

}  // namespace emplace
