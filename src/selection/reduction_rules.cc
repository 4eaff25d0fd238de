// Each rule keeps at least one optimum:
//
// - prune_and_fold: moving the least of a row or column to its strategy changes no sum (soft arc
//   consistency; Larrosa and Schiex, AIJ 159, 2004).
// - prune_by_usage: a strategy that uses more than the slack is in no feasible choice, as the slack
//   is what is left when everyone else uses the least.
// - remove_dominated: t instead of s costs no more, whatever the neighbours choose, summed edge by
//   edge, and uses no more at any time, so an optimum with s is also one with t (dead-end
//   elimination; Goldstein, Biophys. J. 66, 1994). Strategies go one by one, so that of equal ones
//   one stays.
// - contract_determined: where every strategy of a node leaves a neighbour just one, the two become
//   one node.
// - peel: of a leaf, only those choices matter, for each strategy of its neighbour, that no other
//   beats in both cost and usage; a node with two edges and no usage is replaced by its minimum.
//
// A rule that would make tables larger than before, beyond small limits, is not applied. Folding is
// linear in the tables; dominance takes strategies^2 * widths for each node and stops when its work
// is spent.
#include "selection/reduction_rules.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "selection/range_minimum.h"

namespace emplace {
namespace {

using Pairs = std::vector<std::pair<std::int32_t, std::int32_t>>;

// A bypass may make a table this much larger than the two that it replaces, or this large.
constexpr std::size_t kBypassEntries = 4096;
// A node may absorb a leaf that gives it more strategies, up to so many.
constexpr std::size_t kGrowTo = 8;

std::vector<std::int32_t> allowed_strategies(const ReducedNode& node) {
  std::vector<std::int32_t> kept;
  for (std::int32_t s = 0; s < node.size(); ++s) {
    if (node.cost[s] < kForbidden) kept.push_back(s);
  }
  return kept;
}

bool drop_forbidden(ReductionGraph& graph, std::int32_t node) {
  const auto kept = allowed_strategies(graph.node(node));
  if (static_cast<std::int32_t>(kept.size()) == graph.node(node).size()) return false;
  graph.keep_strategies(node, kept);
  return true;
}

// Moves the least cost of each line of the table (a row for the first end, a column for the other)
// to the line's strategy, which becomes forbidden where the whole line is.
bool fold_lines(ReductionGraph& graph, std::int32_t e, bool rows) {
  const ReducedEdge& edge = graph.edge(e);
  const std::int32_t node = rows ? edge.a : edge.b;
  const std::size_t columns = graph.node(edge.b).size();
  const std::size_t lines = graph.node(node).size();
  const std::size_t across = rows ? columns : graph.node(edge.a).size();
  const std::size_t line_step = rows ? columns : 1;
  const std::size_t step = rows ? 1 : columns;
  auto& table = graph.table(e);
  bool changed = false;
  for (std::size_t line = 0; line < lines; ++line) {
    std::int64_t least = kForbidden;
    for (std::size_t k = 0; k < across; ++k) {
      least = std::min(least, table[line * line_step + k * step]);
    }
    if (least == 0) continue;
    changed = true;
    graph.add_cost(node, static_cast<std::int32_t>(line), least);
    for (std::size_t k = 0; k < across; ++k) {
      auto& entry = table[line * line_step + k * step];
      if (entry < kForbidden) entry -= least;
    }
  }
  return changed;
}

// Marks what a forbidden strategy makes impossible, so that folding does not see it.
void forbid_lines(ReductionGraph& graph, std::int32_t e) {
  const ReducedEdge& edge = graph.edge(e);
  for (const std::int32_t node : {edge.a, edge.b}) drop_forbidden(graph, node);
}

// Strategy `t` instead of `s` costs no more and uses no more, whatever the neighbours do.
class Dominance {
 public:
  Dominance(const ReductionGraph& graph, std::int32_t node)
      : node_(graph.node(node)), size_(node_.size()) {
    for (const std::int32_t e : graph.edges_of(node)) {
      const ReducedEdge& edge = graph.edge(e);
      const std::int32_t width = graph.node(edge.other(node)).size();
      widths_.push_back(width);
      if (edge.a == node) {
        tables_.push_back(edge.table.data());
        continue;
      }
      auto& turned = turned_.emplace_back(edge.table.size());
      for (std::int32_t j = 0; j < width; ++j) {
        for (std::int32_t i = 0; i < size_; ++i) {
          turned[static_cast<std::size_t>(i) * width + j] =
              edge.table[static_cast<std::size_t>(j) * size_ + i];
        }
      }
      tables_.push_back(nullptr);
    }
    std::size_t next = 0;
    for (auto& table : tables_) {
      if (table == nullptr) table = turned_[next++].data();
    }
    order_edges();
    find_least();
  }

  std::int64_t work_per_pair() const {
    return std::accumulate(widths_.begin(), widths_.end(), std::int64_t{1}) / 2 + 1;
  }

  bool beats(std::int32_t t, std::int32_t s) const {
    std::int64_t excess = node_.cost[t] - node_.cost[s] - least_total_[s];
    if (excess > 0) return false;
    for (const UsagePiece& piece : node_.pieces) {
      if (piece.usage[t] > piece.usage[s]) return false;
    }
    // Every edge adds 0 or more.
    for (const std::size_t k : order_) {
      excess += least_[k][s];
      if (!add_excess(tables_[k], widths_[k], t, s, excess, least_[k][s])) return false;
    }
    return true;
  }

 private:
  // Those with most forbidden entries first: they end most comparisons.
  void order_edges() {
    std::vector<std::int64_t> forbidden;
    for (std::size_t k = 0; k < tables_.size(); ++k) {
      const auto count = static_cast<std::size_t>(size_) * widths_[k];
      forbidden.push_back(std::count(tables_[k], tables_[k] + count, kForbidden) * 1000 /
                          static_cast<std::int64_t>(count));
    }
    order_.resize(tables_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t x, std::size_t y) { return forbidden[x] > forbidden[y]; });
  }

  // The least cost in each row, of which `beats` counts on.
  void find_least() {
    least_total_.assign(size_, 0);
    for (std::size_t k = 0; k < tables_.size(); ++k) {
      auto& least = least_.emplace_back(size_, 0);
      for (std::int32_t s = 0; s < size_; ++s) {
        const std::int64_t* row = tables_[k] + static_cast<std::size_t>(s) * widths_[k];
        least[s] = *std::min_element(row, row + widths_[k]);
        least_total_[s] = add_costs(least_total_[s], least[s]);
      }
    }
  }

  // Adds the most that t can cost more than s on one edge, which is at least -least; false when
  // the sum is above 0 then.
  static bool add_excess(const std::int64_t* table, std::int32_t width, std::int32_t t,
                         std::int32_t s, std::int64_t& excess, std::int64_t least) {
    const std::int64_t* better = table + static_cast<std::size_t>(t) * width;
    const std::int64_t* worse = table + static_cast<std::size_t>(s) * width;
    std::int64_t largest = -least;
    for (std::int32_t j = 0; j < width; ++j) {
      if (worse[j] >= kForbidden || better[j] - worse[j] <= largest) continue;
      largest = better[j] - worse[j];
      if (excess + largest > 0) return false;
    }
    excess += largest;
    return true;
  }

  const ReducedNode& node_;
  std::int32_t size_;
  std::vector<const std::int64_t*> tables_;
  std::vector<std::int32_t> widths_;
  std::vector<std::vector<std::int64_t>> turned_;
  std::vector<std::vector<std::int64_t>> least_;
  std::vector<std::int64_t> least_total_;
  std::vector<std::size_t> order_;
};

// For each row the only column that is allowed, where there is one for all.
std::optional<std::vector<std::int32_t>> determined(const ReductionGraph& graph,
                                                    const ReducedEdge& edge, std::int32_t node) {
  std::vector<std::int32_t> result;
  const std::int32_t width = graph.node(edge.other(node)).size();
  for (std::int32_t i = 0; i < graph.node(node).size(); ++i) {
    std::int32_t only = -1;
    for (std::int32_t j = 0; j < width; ++j) {
      if (graph.entry(edge, node, i, j) >= kForbidden) continue;
      if (only >= 0) return std::nullopt;
      only = j;
    }
    if (only < 0) return std::nullopt;
    result.push_back(only);
  }
  return result;
}

// How many table entries there are more when `node` absorbs the node that it determines.
std::int64_t growth(const ReductionGraph& graph, std::int32_t node, std::int32_t other) {
  const std::int64_t more = graph.node(node).size() - graph.node(other).size();
  if (more <= 0) return 0;
  std::int64_t entries = 0;
  for (const std::int32_t e : graph.edges_of(other)) {
    const std::int32_t third = graph.edge(e).other(other);
    if (third != node) entries += more * graph.node(third).size();
  }
  return entries - std::int64_t{graph.node(node).size()} * graph.node(other).size();
}

bool contract(ReductionGraph& graph, std::int32_t e) {
  const std::array ends{graph.edge(e).a, graph.edge(e).b};
  for (const std::int32_t node : ends) {
    const ReducedEdge& edge = graph.edge(e);
    const std::int32_t other = edge.other(node);
    if (growth(graph, node, other) > 0) continue;
    const auto follows = determined(graph, edge, node);
    if (!follows) continue;
    Pairs pairs;
    for (std::int32_t s = 0; s < graph.node(node).size(); ++s) pairs.emplace_back(s, (*follows)[s]);
    graph.absorb(node, other, pairs);
    return true;
  }
  return false;
}

// What remains to choose for a leaf once its neighbour has strategy `s`: all that no other choice
// beats in cost and usage.
void leaf_choices(const ReductionGraph& graph, const ReducedEdge& edge, std::int32_t leaf,
                  std::int32_t s, Pairs& pairs) {
  const ReducedNode& node = graph.node(leaf);
  const std::int32_t neighbour = edge.other(leaf);
  std::vector<std::pair<std::int64_t, std::int32_t>> order;
  for (std::int32_t t = 0; t < node.size(); ++t) {
    const std::int64_t cost = add_costs(node.cost[t], graph.entry(edge, neighbour, s, t));
    if (cost < kForbidden) order.emplace_back(cost, t);
  }
  std::sort(order.begin(), order.end());
  const std::size_t first = pairs.size();
  for (const auto& [cost, t] : order) {
    bool beaten = false;
    for (std::size_t k = first; k < pairs.size() && !beaten; ++k) {
      const std::int32_t better = pairs[k].second;
      beaten = std::all_of(node.pieces.begin(), node.pieces.end(), [&](const UsagePiece& piece) {
        return piece.usage[better] <= piece.usage[t];
      });
    }
    if (!beaten) pairs.emplace_back(s, t);
  }
}

bool peel_leaf(ReductionGraph& graph, std::int32_t leaf) {
  const std::int32_t e = graph.edges_of(leaf).front();
  const std::int32_t neighbour = graph.edge(e).other(leaf);
  Pairs pairs;
  const std::size_t before = graph.node(neighbour).size();
  const std::size_t most = std::max(before, graph.degree(neighbour) <= 3 ? kGrowTo : before);
  for (std::int32_t s = 0; s < graph.node(neighbour).size(); ++s) {
    leaf_choices(graph, graph.edge(e), leaf, s, pairs);
    if (pairs.size() > most) return false;
  }
  if (pairs.empty()) {
    graph.declare_infeasible();
    return false;
  }
  graph.absorb(neighbour, leaf, pairs);
  return true;
}

bool peel_node(ReductionGraph& graph, std::int32_t node) {
  const std::int32_t degree = graph.degree(node);
  if (degree == 0 && graph.node(node).size() == 1) {
    if (graph.node(node).cost.front() >= kForbidden) {
      graph.declare_infeasible();
      return false;
    }
    graph.settle(node);
    return true;
  }
  if (degree == 1) return peel_leaf(graph, node);
  if (degree != 2 || !graph.node(node).pieces.empty()) return false;
  std::size_t entries = 1;
  std::size_t before = 0;
  for (const std::int32_t e : graph.edges_of(node)) {
    entries *= graph.node(graph.edge(e).other(node)).size();
    before += graph.edge(e).table.size();
  }
  if (entries > std::max(before, kBypassEntries)) return false;
  graph.bypass(node);
  return true;
}

}  // namespace

bool prune_and_fold(ReductionGraph& graph, const Stop& stop) {
  bool changed = false;
  for (const std::int32_t node : graph.take_changed_nodes()) {
    changed |= drop_forbidden(graph, node);
    if (graph.infeasible()) return true;
  }
  for (auto edges = graph.take_changed_edges(); !edges.empty();
       edges = graph.take_changed_edges()) {
    for (const std::int32_t e : edges) {
      if (stop()) return changed;
      forbid_lines(graph, e);
      if (graph.infeasible()) return true;
      changed |= fold_lines(graph, e, true);
      changed |= fold_lines(graph, e, false);
      forbid_lines(graph, e);
      if (graph.infeasible()) return true;
      const auto& table = graph.edge(e).table;
      if (std::any_of(table.begin(), table.end(), [](std::int64_t cost) { return cost != 0; })) {
        continue;
      }
      graph.remove_edge(e);
      changed = true;
    }
  }
  return changed;
}

bool prune_by_usage(ReductionGraph& graph) {
  const std::vector<std::int64_t>& slack = graph.slack();
  if (slack.empty() || graph.infeasible()) return false;
  graph.drop_unbinding_usage();
  const RangeMinimum left(slack);
  bool changed = false;
  for (std::int32_t node = 0; node < graph.num_nodes(); ++node) {
    if (!graph.alive(node) || graph.node(node).pieces.empty()) continue;
    std::vector<std::int32_t> kept;
    for (std::int32_t s = 0; s < graph.node(node).size(); ++s) {
      const auto& pieces = graph.node(node).pieces;
      if (std::all_of(pieces.begin(), pieces.end(), [&](const UsagePiece& piece) {
            return piece.usage[s] <= left(piece.begin, piece.end);
          })) {
        kept.push_back(s);
      }
    }
    if (static_cast<std::int32_t>(kept.size()) == graph.node(node).size()) continue;
    graph.keep_strategies(node, kept);
    if (graph.infeasible()) return true;
    changed = true;
  }
  return changed;
}

bool remove_dominated(ReductionGraph& graph, std::span<const std::int32_t> nodes,
                      std::int64_t& work, const Stop& stop) {
  bool changed = false;
  for (const std::int32_t node : nodes) {
    if (work <= 0 || stop()) break;
    if (!graph.alive(node) || graph.node(node).size() == 1) continue;
    const Dominance dominance(graph, node);
    const std::int64_t per_pair = dominance.work_per_pair();
    const std::int32_t size = graph.node(node).size();
    std::vector<std::int32_t> kept(size);
    std::iota(kept.begin(), kept.end(), 0);
    work -= per_pair * size;
    // The cheapest are likeliest to beat; one that was beaten beats nothing that its victor does
    // not.
    for (std::int32_t s = size - 1; s >= 0 && work > 0; --s) {
      for (const std::int32_t t : kept) {
        if (t == s) continue;
        work -= per_pair / 8 + 1;
        if (!dominance.beats(t, s)) continue;
        kept.erase(std::lower_bound(kept.begin(), kept.end(), s));
        break;
      }
    }
    if (static_cast<std::int32_t>(kept.size()) == size) continue;
    graph.keep_strategies(node, kept);
    changed = true;
  }
  return changed;
}

bool contract_determined(ReductionGraph& graph, const Stop& stop) {
  bool changed = false;
  for (std::int32_t e = 0; e < graph.num_edges() && !stop(); ++e) {
    if (graph.edge_alive(e)) changed |= contract(graph, e);
  }
  return changed;
}

bool peel(ReductionGraph& graph, const Stop& stop) {
  bool changed = false;
  std::vector<std::int32_t> nodes(graph.num_nodes());
  std::iota(nodes.begin(), nodes.end(), 0);
  while (!nodes.empty()) {
    std::vector<std::int32_t> next;
    for (const std::int32_t node : nodes) {
      if (stop()) return changed;
      if (!graph.alive(node)) continue;
      std::vector<std::int32_t> neighbours;
      if (graph.degree(node) <= 2) {
        for (const std::int32_t e : graph.edges_of(node)) {
          neighbours.push_back(graph.edge(e).other(node));
        }
      }
      if (graph.degree(node) > 2 || !peel_node(graph, node)) continue;
      if (graph.infeasible()) return true;
      changed = true;
      next.insert(next.end(), neighbours.begin(), neighbours.end());
    }
    nodes = std::move(next);
  }
  return changed;
}

}  // namespace emplace
