#include "learn/units/precedence.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

using Edges = std::vector<std::pair<UnitId, UnitId>>;

// By op: whether it computes something, so that it has a time to run at. Sources and views of them
// do not.
std::vector<bool> computing_ops(const Graph& graph) {
  std::vector<bool> result(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    const bool of_source = graph.is_view(op) && !graph.inputs(op).empty() &&
                           !result[graph.producer(graph.inputs(op)[0])];
    result[op] = !graph.is_source(op) && !of_source;
  }
  return result;
}

// Distinct, in order.
Edges counted_edges(const UnitGraph& units, const std::vector<bool>& computes) {
  const Problem& problem = units.problem();
  const Graph& graph = problem.graph();
  std::vector<bool> group_computes(problem.num_groups(), false);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    if (computes[op]) group_computes[problem.group_of(op)] = true;
  }
  Edges edges;
  const auto add = [&](OpId from, OpId to) {
    if (!computes[from] && group_computes[problem.group_of(from)]) return;
    const UnitId a = units.unit_of_op(from);
    const UnitId b = units.unit_of_op(to);
    if (a != b) edges.emplace_back(a, b);
  };
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    for (const TensorId tensor : graph.inputs(op)) add(graph.producer(tensor), op);
    for (const OpId before : graph.after(op)) add(before, op);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

// By unit: its first op that computes, or its first of all.
std::vector<OpId> first_ops(const UnitGraph& units, const std::vector<bool>& computes) {
  std::vector<OpId> any(units.size(), kNoOp);
  std::vector<OpId> computing(units.size(), kNoOp);
  for (OpId op = units.problem().num_ops(); op-- > 0;) {
    check_time_at(op);
    any[units.unit_of_op(op)] = op;
    if (computes[op]) computing[units.unit_of_op(op)] = op;
  }
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    check_time_at(unit);
    if (computing[unit] == kNoOp) computing[unit] = any[unit];
  }
  return computing;
}

// By node: the number of its strongly connected component (Tarjan 1972, without recursion).
class Components {
 public:
  explicit Components(const Csr<UnitId>& successors)
      : successors_(successors),
        index_(successors.size(), 0),
        low_(successors.size(), 0),
        of_(successors.size(), kOpen) {
    for (UnitId node = 0; node < successors.size(); ++node) {
      if (index_[node] == 0) search(node);
    }
  }
  std::uint32_t of(UnitId node) const { return of_[node]; }

 private:
  static constexpr std::uint32_t kOpen = ~std::uint32_t{0};

  void enter(UnitId node) {
    index_[node] = low_[node] = ++entered_;
    path_.emplace_back(node, 0);
    open_.push_back(node);
  }
  void search(UnitId root) {
    enter(root);
    while (!path_.empty()) {
      auto& [node, next] = path_.back();
      const std::span<const UnitId> targets = successors_[node];
      if (next < targets.size()) {
        const UnitId target = targets[next++];
        if (index_[target] == 0) {
          enter(target);
        } else if (of_[target] == kOpen) {
          low_[node] = std::min(low_[node], index_[target]);
        }
        continue;
      }
      leave(node);
    }
  }
  void leave(UnitId node) {
    path_.pop_back();
    if (!path_.empty()) {
      UnitId& low = low_[path_.back().first];
      low = std::min(low, low_[node]);
    }
    if (low_[node] != index_[node]) return;
    for (UnitId member = kOpen; member != node;) {
      member = open_.back();
      open_.pop_back();
      of_[member] = count_;
    }
    ++count_;
  }

  const Csr<UnitId>& successors_;
  std::vector<std::uint32_t> index_;  // from 1, in the order of the search; 0: not yet
  std::vector<std::uint32_t> low_;
  std::vector<std::uint32_t> of_;
  std::vector<std::pair<UnitId, std::size_t>> path_;
  std::vector<UnitId> open_;
  std::uint32_t entered_ = 0;
  std::uint32_t count_ = 0;
};

Csr<UnitId> lists(UnitId units, const Edges& edges) {
  return Csr<UnitId>::from_pairs(units, edges);
}

// The earliest of those whose predecessors are all there comes next.
std::vector<UnitId> topological(const Precedence& precedence, const std::vector<OpId>& first) {
  using Entry = std::pair<OpId, UnitId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<std::size_t> missing;
  for (UnitId unit = 0; unit < first.size(); ++unit) {
    check_time_at(unit);
    missing.push_back(precedence.predecessors[unit].size());
    if (missing.back() == 0) ready.emplace(first[unit], unit);
  }
  std::vector<UnitId> order;
  while (!ready.empty()) {
    const UnitId unit = ready.top().second;
    ready.pop();
    order.push_back(unit);
    for (const UnitId next : precedence.successors[unit]) {
      if (--missing[next] == 0) ready.emplace(first[next], next);
    }
  }
  return order;
}

}  // namespace

Precedence precedence_of(const UnitGraph& units) {
  const std::vector<bool> computes = computing_ops(units.problem().graph());
  const std::vector<OpId> first = first_ops(units, computes);
  Edges edges = counted_edges(units, computes);
  const Csr<UnitId> all = lists(units.size(), edges);
  const Components components(all);
  std::erase_if(edges, [&](const auto& edge) {
    return components.of(edge.first) == components.of(edge.second) &&
           first[edge.first] > first[edge.second];
  });
  Precedence result;
  result.successors = lists(units.size(), edges);
  for (auto& [from, to] : edges) std::swap(from, to);
  std::sort(edges.begin(), edges.end());
  result.predecessors = lists(units.size(), edges);
  result.order = topological(result, first);
  return result;
}

}  // namespace emplace::learn
