#include "selection/assignment.h"

#include <algorithm>
#include <utility>

#include "selection/selection_problem.h"

namespace emplace {
namespace {

// Adds one cost, or takes it away, where `sign` is -1.
void count(std::int64_t cost, int sign, std::int64_t& total, std::int32_t& blocked) {
  if (cost >= kForbidden) {
    blocked += sign;
  } else {
    total += sign * cost;
  }
}

}  // namespace

Assignment::Assignment(const CostTables& tables, std::vector<std::int32_t> choice)
    : tables_(tables), change_(tables.num_times() + 1, 0), changed_(tables.num_times(), 0) {
  reset(choice);
}

void Assignment::reset(std::span<const std::int32_t> choice) {
  choice_.assign(choice.begin(), choice.end());
  next_ = choice_;
  cost_ = tables_.problem().constant;
  blocked_ = 0;
  for (std::int32_t node = 0; node < tables_.num_nodes(); ++node) {
    count(tables_.problem().nodes[node].cost[choice_[node]], 1, cost_, blocked_);
  }
  for (const ReducedEdge& edge : tables_.problem().edges) {
    count(edge_cost(edge, choice_), 1, cost_, blocked_);
  }
  usage_.assign(tables_.num_times() + 1, 0);
  for (std::int32_t node = 0; node < tables_.num_nodes(); ++node) {
    for (const UsagePiece& piece : tables_.problem().nodes[node].pieces) {
      usage_[piece.begin] += piece.usage[choice_[node]];
      usage_[piece.end] -= piece.usage[choice_[node]];
    }
  }
  usage_.pop_back();
  for (std::size_t t = 1; t < usage_.size(); ++t) usage_[t] += usage_[t - 1];
  excess_ = 0;
  for (std::size_t t = 0; t < usage_.size(); ++t) {
    excess_ +=
        static_cast<double>(std::max<std::int64_t>(0, usage_[t] - tables_.problem().slack[t]));
  }
}

std::int64_t Assignment::edge_cost(const ReducedEdge& edge,
                                   std::span<const std::int32_t> choice) const {
  return edge
      .table[static_cast<std::size_t>(choice[edge.a]) * tables_.size(edge.b) + choice[edge.b]];
}

void Assignment::cost_effect(std::span<const NodeChange> changes, ChangeEffect& effect) {
  const ReducedProblem& problem = tables_.problem();
  for (const auto& [node, strategy] : changes) next_[node] = strategy;
  for (const auto& [node, strategy] : changes) {
    const auto& cost = problem.nodes[node].cost;
    count(cost[strategy], 1, effect.cost, effect.blocked);
    count(cost[choice_[node]], -1, effect.cost, effect.blocked);
    for (const std::int32_t e : problem.edges_of[node]) {
      const ReducedEdge& edge = problem.edges[e];
      // An edge between two changed nodes counts at its first end.
      if (node == edge.b && next_[edge.a] != choice_[edge.a]) continue;
      count(edge_cost(edge, next_), 1, effect.cost, effect.blocked);
      count(edge_cost(edge, choice_), -1, effect.cost, effect.blocked);
    }
  }
  for (const auto& [node, strategy] : changes) next_[node] = choice_[node];
}

void Assignment::usage_effect(std::span<const NodeChange> changes, ChangeEffect& effect) {
  const ReducedProblem& problem = tables_.problem();
  effect.begin = tables_.num_times();
  for (const auto& [node, strategy] : changes) {
    for (const UsagePiece& piece : problem.nodes[node].pieces) {
      const std::int64_t more = piece.usage[strategy] - piece.usage[choice_[node]];
      if (more == 0) continue;
      change_[piece.begin] += more;
      change_[piece.end] -= more;
      effect.begin = std::min(effect.begin, piece.begin);
      effect.end = std::max(effect.end, piece.end);
    }
  }
  effect.begin = std::min(effect.begin, effect.end);
  std::int64_t more = 0;
  for (std::int32_t t = effect.begin; t < effect.end; ++t) {
    more += change_[t];
    change_[t] = 0;
    changed_[t] = usage_[t] + more;
    const std::int64_t slack = problem.slack[t];
    if (changed_[t] <= slack && usage_[t] <= slack) continue;
    effect.excess += static_cast<double>(std::max<std::int64_t>(0, changed_[t] - slack) -
                                         std::max<std::int64_t>(0, usage_[t] - slack));
  }
  change_[effect.end] = 0;
}

ChangeEffect Assignment::effect(std::span<const NodeChange> changes) {
  ChangeEffect result;
  cost_effect(changes, result);
  usage_effect(changes, result);
  return result;
}

void Assignment::apply(std::span<const NodeChange> changes, const ChangeEffect& effect) {
  for (const auto& [node, strategy] : changes) {
    choice_[node] = strategy;
    next_[node] = strategy;
  }
  std::copy(changed_.begin() + effect.begin, changed_.begin() + effect.end,
            usage_.begin() + effect.begin);
  excess_ += effect.excess;
  blocked_ += effect.blocked;
  cost_ += effect.cost;
}

}  // namespace emplace
