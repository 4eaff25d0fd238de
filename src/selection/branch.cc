#include "selection/branch.h"

#include <algorithm>
#include <utility>

namespace emplace {
namespace {

constexpr std::int64_t kStepsPerLook = 256;  // at the clock

}  // namespace

BranchSearch::BranchSearch(const CostTables& tables)
    : tables_(tables),
      problem_(tables.problem()),
      choice_(problem_.num_nodes(), 0),
      usage_(problem_.slack.size(), 0),
      bound_(problem_.constant) {
  for (const ReducedNode& node : problem_.nodes) {
    costs_.push_back(node.cost);
    least_.push_back(*std::min_element(node.cost.begin(), node.cost.end()));
    bound_ = add_costs(bound_, least_.back());
  }
  order_nodes();
}

// Next to those that are chosen already, so that bounds rise soon.
void BranchSearch::order_nodes() {
  position_.assign(problem_.num_nodes(), -1);
  std::vector<std::int32_t> chosen_neighbours(problem_.num_nodes(), 0);
  for (std::int32_t k = 0; k < problem_.num_nodes(); ++k) {
    std::int32_t next = -1;
    for (std::int32_t i = 0; i < problem_.num_nodes(); ++i) {
      if (position_[i] >= 0) continue;
      if (next < 0 || std::pair(chosen_neighbours[i], -problem_.nodes[i].size()) >
                          std::pair(chosen_neighbours[next], -problem_.nodes[next].size())) {
        next = i;
      }
    }
    position_[next] = k;
    order_.push_back(next);
    for (const auto& arc : tables_.arcs(next)) ++chosen_neighbours[arc.other];
  }
}

bool BranchSearch::fits(std::int32_t node, std::int32_t strategy) const {
  for (const UsagePiece& piece : problem_.nodes[node].pieces) {
    for (std::int32_t t = piece.begin; t < piece.end; ++t) {
      if (usage_[t] + piece.usage[strategy] > problem_.slack[t]) return false;
    }
  }
  return true;
}

// Hands the choice on to the neighbours that come later; false when the bound says that this leads
// nowhere.
bool BranchSearch::enter(std::int32_t node, std::int32_t strategy) {
  choice_[node] = strategy;
  bound_ += costs_[node][strategy] - least_[node];
  for (const UsagePiece& piece : problem_.nodes[node].pieces) {
    for (std::int32_t t = piece.begin; t < piece.end; ++t) usage_[t] += piece.usage[strategy];
  }
  for (const std::int32_t e : problem_.edges_of[node]) {
    const ReducedEdge& edge = problem_.edges[e];
    const std::int32_t other = edge.other(node);
    if (position_[other] < position_[node]) continue;
    saved_.push_back({other, costs_[other], least_[other]});
    const std::int32_t columns = problem_.nodes[edge.b].size();
    std::int64_t least = kForbidden;
    for (std::int32_t s = 0; s < problem_.nodes[other].size(); ++s) {
      const std::size_t at = edge.a == node ? static_cast<std::size_t>(strategy) * columns + s
                                            : static_cast<std::size_t>(s) * columns + strategy;
      costs_[other][s] = add_costs(costs_[other][s], edge.table[at]);
      least = std::min(least, costs_[other][s]);
    }
    bound_ += least - least_[other];
    least_[other] = least;
    if (least >= kForbidden) return false;
  }
  return bound_ < best_;
}

void BranchSearch::leave(std::int32_t node, std::int32_t strategy, std::size_t saved) {
  while (saved_.size() > saved) {
    Saved& last = saved_.back();
    bound_ += last.least - least_[last.node];
    least_[last.node] = last.least;
    costs_[last.node] = std::move(last.costs);
    saved_.pop_back();
  }
  for (const UsagePiece& piece : problem_.nodes[node].pieces) {
    for (std::int32_t t = piece.begin; t < piece.end; ++t) usage_[t] -= piece.usage[strategy];
  }
  bound_ -= costs_[node][strategy] - least_[node];
}

void BranchSearch::open(std::size_t depth) {
  if (depth == order_.size()) {
    const Assignment found(tables_, choice_);
    best_ = found.cost();
    incumbent_->offer(found);
    return;
  }
  const std::int32_t node = order_[depth];
  std::vector<std::pair<std::int64_t, std::int32_t>> sorted;
  for (std::int32_t s = 0; s < problem_.nodes[node].size(); ++s) {
    if (costs_[node][s] < kForbidden) sorted.emplace_back(costs_[node][s], s);
  }
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [cost, strategy] : sorted) {
    if (steps_ % kStepsPerLook == 0 && stop_()) steps_ = 0;
    if (--steps_ < 0 || bound_ + cost - least_[node] >= best_) return;
    if (!fits(node, strategy)) continue;
    const std::size_t saved = saved_.size();
    if (enter(node, strategy)) open(depth + 1);
    leave(node, strategy, saved);
  }
}

bool BranchSearch::run(std::int64_t steps, SelectionIncumbent& incumbent,
                       const std::function<bool()>& stop) {
  incumbent_ = &incumbent;
  stop_ = stop;
  steps_ = steps;
  best_ = incumbent.feasible() ? incumbent.cost() : kForbidden;
  if (bound_ < best_) open(0);
  return steps_ >= 0;
}

}  // namespace emplace
