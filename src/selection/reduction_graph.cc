// The problem under reduction and the log of what was done to it. Invariant: the optimum of the
// original problem is constant_ plus that of what is alive here, and `undo`, which reads the log
// backwards, turns every choice for the alive nodes into one for all of the same cost (and usage
// within the limits). Every operation keeps it by itself:
//
//   keep_strategies  drops what the caller has shown to be of no use; the log has the old numbers
//   settle           a node with one strategy and no edges: its cost becomes part of the constant
//   absorb           two nodes as one whose strategies are pairs; their edge becomes costs
//   bypass           a node with two edges and no usage: the least over its strategies is an edge
//
// Usage is kept as pieces above the least that a node uses at each time; that least is taken off
// the slack of the limit once and for all, as differences at the ends of the piece, so that it
// takes O(1), and added up when the slack is asked for. Times are first thinned to those at which a
// maximal set is alive, which loses nothing. Tables of parallel edges are added up, so there is one
// edge at most between two nodes. Exact, except where limits do not fit in 64 bits: usages are then
// rounded up (`rounded`), and choices stay feasible but bounds are none. Every operation is linear
// in the tables that it touches. Rules: reduction_rules.cc. Ours; the operations are those of PBQP
// and cost-function networks (Scholz and Eckstein, LCTES 2002).
#include "selection/reduction_graph.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

#include "selection/alive_times.h"
#include "selection/binding_times.h"

namespace emplace {
namespace {

// Sums of usages over all nodes stay below this.
constexpr std::int64_t kLargestTotal = std::int64_t{1} << 61;

bool is_zero(const std::vector<std::int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](std::int64_t value) { return value == 0; });
}

bool is_identity(std::span<const std::int32_t> from, std::int32_t size) {
  if (static_cast<std::int32_t>(from.size()) != size) return false;
  for (std::int32_t s = 0; s < size; ++s) {
    if (from[s] != s) return false;
  }
  return true;
}

// The sum of pieces at every time, as pieces that do not overlap.
std::vector<UsagePiece> disjoint(const std::vector<UsagePiece>& pieces, std::int32_t size) {
  std::vector<std::pair<std::int32_t, std::pair<std::size_t, std::int64_t>>> events;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    events.push_back({pieces[i].begin, {i, 1}});
    events.push_back({pieces[i].end, {i, -1}});
  }
  std::sort(events.begin(), events.end());
  std::vector<UsagePiece> result;
  std::vector<std::int64_t> now(size, 0);
  for (std::size_t k = 0; k < events.size(); ++k) {
    const auto [piece, sign] = events[k].second;
    for (std::int32_t s = 0; s < size; ++s) now[s] += sign * pieces[piece].usage[s];
    if (k + 1 == events.size() || events[k + 1].first == events[k].first || is_zero(now)) continue;
    const std::int32_t begin = events[k].first;
    if (!result.empty() && result.back().end == begin && result.back().usage == now) {
      result.back().end = events[k + 1].first;
    } else {
      result.push_back({begin, events[k + 1].first, now});
    }
  }
  return result;
}

}  // namespace

ReductionGraph::ReductionGraph(const SelectionProblem& problem)
    : nodes_(problem.num_nodes()),
      alive_(problem.num_nodes(), 1),
      edges_of_(problem.num_nodes()),
      normal_pieces_(problem.num_nodes(), 1),
      node_changed_(problem.num_nodes(), 0),
      stale_(problem.num_nodes(), 1) {
  for (std::int32_t i = 0; i < num_nodes(); ++i) {
    const auto costs = problem.costs(i);
    nodes_[i].cost.assign(costs.begin(), costs.end());
  }
  if (problem.usage_limit()) load_times(problem);
  load_edges(problem);
  for (std::int32_t i = 0; i < num_nodes(); ++i) touch(i);
}

void ReductionGraph::load_times(const SelectionProblem& problem) {
  const std::int64_t limit = *problem.usage_limit();
  if (limit < 0) {
    infeasible_ = true;
    return;
  }
  std::vector<AliveInterval> intervals(num_nodes());
  for (std::int32_t i = 0; i < num_nodes(); ++i) {
    const auto usages = problem.usages(i);
    const auto& alive = problem.interval(i);
    if (alive.empty() || *std::max_element(usages.begin(), usages.end()) == 0) continue;
    intervals[i] = {alive.begin, alive.end};
  }
  const AliveTimes times = maximal_alive_times(intervals);
  int shift = 0;
  while ((limit >> shift) > kLargestTotal / std::max(num_nodes(), 1)) ++shift;
  rounded_ = shift > 0;
  slack_.assign(times.count, limit >> shift);
  slack_change_.assign(times.count + 1, 0);
  for (std::int32_t i = 0; i < num_nodes(); ++i) {
    const auto [begin, end] = times.spans[i];
    if (begin < end) nodes_[i].pieces.push_back({begin, end, {}});
  }
  load_pieces(problem, shift);
}

void ReductionGraph::load_pieces(const SelectionProblem& problem, int shift) {
  const std::int64_t limit = *problem.usage_limit();
  for (std::int32_t i = 0; i < num_nodes(); ++i) {
    if (nodes_[i].pieces.empty()) continue;
    auto& usage = nodes_[i].pieces.front().usage;
    for (std::int32_t s = 0; s < nodes_[i].size(); ++s) {
      const std::int64_t exact = problem.usages(i)[s];
      if (exact > limit) nodes_[i].cost[s] = kForbidden;
      const std::int64_t used = std::min(exact, limit);
      usage.push_back(shift == 0 ? used : (used >> shift) + 1);
    }
    normalise(i);
  }
}

void ReductionGraph::load_edges(const SelectionProblem& problem) {
  for (std::int32_t e = 0; e < problem.num_edges(); ++e) {
    const auto [a, b] = problem.edge(e);
    const auto table = problem.table(e);
    if (a == b) {
      const std::size_t step = nodes_[a].size() + 1;
      for (std::int32_t s = 0; s < nodes_[a].size(); ++s) add_cost(a, s, table[s * step]);
      continue;
    }
    connect(a, b, std::vector<std::int64_t>(table.begin(), table.end()));
  }
}

std::uint64_t ReductionGraph::key(std::int32_t a, std::int32_t b) {
  const auto [low, high] = std::minmax(a, b);
  return (static_cast<std::uint64_t>(low) << 32) | static_cast<std::uint32_t>(high);
}

void ReductionGraph::connect(std::int32_t a, std::int32_t b, std::vector<std::int64_t> table) {
  const auto [found, added] = edge_between_.try_emplace(key(a, b), num_edges());
  if (added) {
    edges_of_[a].push_back(num_edges());
    edges_of_[b].push_back(num_edges());
    edges_.push_back({a, b, std::move(table)});
    edge_changed_.push_back(0);
    touch_edge(num_edges() - 1);
    return;
  }
  ReducedEdge& edge = edges_[found->second];
  const std::int32_t columns = nodes_[b].size();
  for (std::int32_t i = 0; i < nodes_[a].size(); ++i) {
    for (std::int32_t j = 0; j < columns; ++j) {
      const std::size_t at = edge.a == a ? static_cast<std::size_t>(i) * columns + j
                                         : static_cast<std::size_t>(j) * nodes_[a].size() + i;
      const std::size_t from = static_cast<std::size_t>(i) * columns + j;
      edge.table[at] = add_costs(edge.table[at], table[from]);
    }
  }
  touch_edge(found->second);
}

void ReductionGraph::touch(std::int32_t node) {
  stale_[node] = 1;
  if (node_changed_[node]) return;
  node_changed_[node] = 1;
  changed_nodes_.push_back(node);
}

void ReductionGraph::touch_edge(std::int32_t edge) {
  touch(edges_[edge].a);
  touch(edges_[edge].b);
  if (edge_changed_[edge]) return;
  edge_changed_[edge] = 1;
  changed_edges_.push_back(edge);
}

std::vector<std::int32_t> ReductionGraph::take_changed_nodes() {
  std::vector<std::int32_t> taken = std::move(changed_nodes_);
  changed_nodes_.clear();
  for (const std::int32_t node : taken) node_changed_[node] = 0;
  std::erase_if(taken, [&](std::int32_t node) { return !alive(node); });
  std::sort(taken.begin(), taken.end());
  return taken;
}

std::vector<std::int32_t> ReductionGraph::take_stale_nodes() {
  std::vector<std::int32_t> taken;
  for (std::int32_t node = 0; node < num_nodes(); ++node) {
    if (alive(node) && stale_[node]) taken.push_back(node);
    stale_[node] = 0;
  }
  return taken;
}

std::vector<std::int32_t> ReductionGraph::take_changed_edges() {
  std::vector<std::int32_t> taken = std::move(changed_edges_);
  changed_edges_.clear();
  for (const std::int32_t edge : taken) edge_changed_[edge] = 0;
  std::erase_if(taken, [&](std::int32_t edge) { return !edge_alive(edge); });
  return taken;
}

// Row (or column) s of the table becomes what row from[s] was; `node` has its new size already.
void ReductionGraph::reindex(std::int32_t e, std::int32_t node, std::span<const std::int32_t> from,
                             std::int32_t old_size) {
  ReducedEdge& edge = edges_[e];
  std::vector<std::int64_t> table;
  if (edge.a == node) {
    const std::int32_t columns = nodes_[edge.b].size();
    table.reserve(from.size() * columns);
    for (const std::int32_t s : from) {
      const auto row = edge.table.begin() + static_cast<std::ptrdiff_t>(s) * columns;
      table.insert(table.end(), row, row + columns);
    }
  } else {
    const std::int32_t rows = nodes_[edge.a].size();
    table.reserve(from.size() * rows);
    for (std::int32_t i = 0; i < rows; ++i) {
      const std::int64_t* row = edge.table.data() + static_cast<std::size_t>(i) * old_size;
      for (const std::int32_t s : from) table.push_back(row[s]);
    }
  }
  edge.table = std::move(table);
  touch_edge(e);
}

void ReductionGraph::keep_strategies(std::int32_t node, std::span<const std::int32_t> kept) {
  const std::int32_t old_size = nodes_[node].size();
  if (static_cast<std::int32_t>(kept.size()) == old_size) return;
  if (kept.empty()) {
    infeasible_ = true;
    return;
  }
  const auto take = [&](std::vector<std::int64_t>& values) {
    for (std::size_t s = 0; s < kept.size(); ++s) values[s] = values[kept[s]];
    values.resize(kept.size());
  };
  take(nodes_[node].cost);
  for (UsagePiece& piece : nodes_[node].pieces) {
    take(piece.usage);
    const std::int64_t least = *std::min_element(piece.usage.begin(), piece.usage.end());
    use_less(piece.begin, piece.end, least);
    for (std::int64_t& usage : piece.usage) usage -= least;
  }
  std::erase_if(nodes_[node].pieces, [](const UsagePiece& piece) { return is_zero(piece.usage); });
  for (const std::int32_t e : edges_of_[node]) reindex(e, node, kept, old_size);
  steps_.push_back({Step::Kind::kKeep, node, -1, -1, {kept.begin(), kept.end()}, {}});
  touch(node);
}

void ReductionGraph::add_cost(std::int32_t node, std::int32_t strategy, std::int64_t cost) {
  auto& value = nodes_[node].cost[strategy];
  value = add_costs(value, cost);
  if (cost != 0) touch(node);
}

void ReductionGraph::remove_edge(std::int32_t e) {
  ReducedEdge& edge = edges_[e];
  touch(edge.a);
  touch(edge.b);
  for (const std::int32_t node : {edge.a, edge.b}) {
    auto& list = edges_of_[node];
    list.erase(std::find(list.begin(), list.end(), e));
  }
  edge_between_.erase(key(edge.a, edge.b));
  edge.a = -1;
  edge.table = {};
}

void ReductionGraph::settle(std::int32_t node) {
  EMPLACE_CHECK(nodes_[node].size() == 1 && edges_of_[node].empty());
  constant_ = add_costs(constant_, nodes_[node].cost.front());
  if (constant_ >= kForbidden) infeasible_ = true;
  alive_[node] = 0;
  steps_.push_back({Step::Kind::kSettle, node});
}

std::vector<std::int64_t> ReductionGraph::seen_from(const ReducedEdge& edge,
                                                    std::int32_t node) const {
  if (edge.a == node) return edge.table;
  const std::int32_t columns = nodes_[edge.b].size();
  const std::int32_t rows = nodes_[edge.a].size();
  std::vector<std::int64_t> result;
  result.reserve(edge.table.size());
  for (std::int32_t j = 0; j < columns; ++j) {
    for (std::int32_t i = 0; i < rows; ++i) {
      result.push_back(edge.table[static_cast<std::size_t>(i) * columns + j]);
    }
  }
  return result;
}

void ReductionGraph::absorb(std::int32_t node, std::int32_t other,
                            std::span<const std::pair<std::int32_t, std::int32_t>> pairs) {
  const auto joint = edge_between_.find(key(node, other));
  EMPLACE_CHECK(joint != edge_between_.end());
  const std::int32_t between = joint->second;
  Step step{Step::Kind::kAbsorb, node, other};
  std::vector<std::int64_t> cost;
  for (const auto& [s, t] : pairs) {
    step.first.push_back(s);
    step.second.push_back(t);
    const std::int64_t both = add_costs(nodes_[node].cost[s], nodes_[other].cost[t]);
    cost.push_back(add_costs(both, entry(edges_[between], node, s, t)));
  }
  remove_edge(between);
  const std::int32_t old_size = nodes_[node].size();
  const bool same = is_identity(step.first, old_size);
  auto& pieces = nodes_[node].pieces;
  const auto select = [](std::vector<std::int64_t>& usage, std::span<const std::int32_t> from) {
    std::vector<std::int64_t> taken;
    for (const std::int32_t s : from) taken.push_back(usage[s]);
    usage = std::move(taken);
  };
  if (!same) {
    for (UsagePiece& piece : pieces) select(piece.usage, step.first);
  }
  for (UsagePiece& piece : nodes_[other].pieces) {
    select(piece.usage, step.second);
    pieces.push_back(std::move(piece));
  }
  const std::int32_t other_size = nodes_[other].size();
  std::vector<std::pair<std::int32_t, std::vector<std::int64_t>>> inherited;
  while (!edges_of_[other].empty()) {
    const std::int32_t e = edges_of_[other].back();
    const std::int32_t third = edges_[e].other(other);
    const std::vector<std::int64_t> old = seen_from(edges_[e], other);
    remove_edge(e);
    const std::size_t columns = old.size() / other_size;
    std::vector<std::int64_t> table;
    for (const std::int32_t t : step.second) {
      const auto row = old.begin() + static_cast<std::ptrdiff_t>(t * columns);
      table.insert(table.end(), row, row + static_cast<std::ptrdiff_t>(columns));
    }
    inherited.emplace_back(third, std::move(table));
  }
  nodes_[node].cost = std::move(cost);
  nodes_[other] = {};
  alive_[other] = 0;
  if (!same) {
    for (const std::int32_t e : edges_of_[node]) reindex(e, node, step.first, old_size);
  }
  for (auto& [third, table] : inherited) connect(node, third, std::move(table));
  steps_.push_back(std::move(step));
  touch(node);
  if (nodes_[node].pieces.size() > 2 * normal_pieces_[node] + 8) normalise(node);
}

void ReductionGraph::bypass(std::int32_t node) {
  EMPLACE_CHECK(degree(node) == 2 && nodes_[node].pieces.empty());
  const std::int32_t first = edges_of_[node][0];
  const std::int32_t second = edges_of_[node][1];
  Step step{Step::Kind::kBypass, node, edges_[first].other(node), edges_[second].other(node)};
  std::vector<std::int64_t> table;
  const auto left = seen_from(edges_[first], step.other);
  const auto right = seen_from(edges_[second], step.third);
  const std::int32_t size = nodes_[node].size();
  for (std::int32_t i = 0; i < nodes_[step.other].size(); ++i) {
    for (std::int32_t j = 0; j < nodes_[step.third].size(); ++j) {
      std::int64_t best = kForbidden;
      std::int32_t at = 0;
      for (std::int32_t s = 0; s < size; ++s) {
        const std::int64_t sides = add_costs(left[static_cast<std::size_t>(i) * size + s],
                                             right[static_cast<std::size_t>(j) * size + s]);
        const std::int64_t cost = add_costs(sides, nodes_[node].cost[s]);
        if (cost >= best) continue;
        best = cost;
        at = s;
      }
      table.push_back(best);
      step.first.push_back(at);
    }
  }
  step.second.push_back(nodes_[step.third].size());  // the table's width
  remove_edge(second);
  remove_edge(first);
  alive_[node] = 0;
  connect(step.other, step.third, std::move(table));
  steps_.push_back(std::move(step));
}

void ReductionGraph::use_less(std::int32_t begin, std::int32_t end, std::int64_t amount) {
  slack_change_[begin] -= amount;
  slack_change_[end] += amount;
}

void ReductionGraph::normalise(std::int32_t node) {
  ReducedNode& reduced = nodes_[node];
  if (reduced.pieces.size() > 1) reduced.pieces = disjoint(reduced.pieces, reduced.size());
  for (UsagePiece& piece : reduced.pieces) {
    const std::int64_t least = *std::min_element(piece.usage.begin(), piece.usage.end());
    use_less(piece.begin, piece.end, least);
    for (std::int64_t& usage : piece.usage) usage -= least;
  }
  std::erase_if(reduced.pieces, [](const UsagePiece& piece) { return is_zero(piece.usage); });
  normal_pieces_[node] = reduced.pieces.size();
}

const std::vector<std::int64_t>& ReductionGraph::slack() {
  std::int64_t change = 0;
  for (std::size_t t = 0; t < slack_.size(); ++t) {
    change += slack_change_[t];
    slack_[t] += change;
    slack_change_[t] = 0;
    if (slack_[t] < 0) infeasible_ = true;
  }
  if (!slack_.empty()) slack_change_.back() = 0;
  return slack_;
}

void ReductionGraph::drop_unbinding_usage() {
  const std::vector<char> binding = binding_times(nodes_, slack());
  std::vector<std::int32_t> before(binding.size() + 1, 0);  // binding times before each
  for (std::size_t t = 0; t < binding.size(); ++t) before[t + 1] = before[t] + binding[t];
  for (std::int32_t i = 0; i < num_nodes(); ++i) {
    const auto dropped = std::erase_if(nodes_[i].pieces, [&](const UsagePiece& piece) {
      return before[piece.begin] == before[piece.end];
    });
    if (dropped > 0) touch(i);
  }
}

ReducedProblem ReductionGraph::compact(std::vector<std::int32_t>& numbers) {
  ReducedProblem result;
  result.constant = constant_;
  std::vector<std::int32_t> place(num_nodes(), -1);
  numbers.clear();
  for (std::int32_t i = 0; i < num_nodes(); ++i) {
    if (!alive(i)) continue;
    normalise(i);
    place[i] = result.num_nodes();
    numbers.push_back(i);
    result.nodes.push_back(std::move(nodes_[i]));
  }
  result.slack = slack();
  result.infeasible = infeasible_;
  result.edges_of.resize(result.nodes.size());
  for (ReducedEdge& edge : edges_) {
    if (edge.a < 0) continue;
    result.edges_of[place[edge.a]].push_back(static_cast<std::int32_t>(result.edges.size()));
    result.edges_of[place[edge.b]].push_back(static_cast<std::int32_t>(result.edges.size()));
    result.edges.push_back({place[edge.a], place[edge.b], std::move(edge.table)});
  }
  edges_.clear();
  return result;
}

void ReductionGraph::undo(std::vector<std::int32_t>& choice) const {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    switch (step->kind) {
      case Step::Kind::kKeep:
        choice[step->node] = step->first[choice[step->node]];
        break;
      case Step::Kind::kSettle:
        choice[step->node] = 0;
        break;
      case Step::Kind::kAbsorb:
        choice[step->other] = step->second[choice[step->node]];
        choice[step->node] = step->first[choice[step->node]];
        break;
      case Step::Kind::kBypass: {
        const std::size_t width = step->second.front();
        choice[step->node] = step->first[choice[step->other] * width + choice[step->third]];
        break;
      }
    }
  }
}

void ReductionGraph::redo(std::vector<std::int32_t>& choice) const {
  const auto place = [](const std::vector<std::int32_t>& list, std::int32_t value) {
    const auto at = std::find(list.begin(), list.end(), value);
    return at == list.end() ? 0 : static_cast<std::int32_t>(at - list.begin());
  };
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::kKeep) {
      choice[step.node] = place(step.first, choice[step.node]);
    } else if (step.kind == Step::Kind::kAbsorb) {
      std::int32_t found = place(step.first, choice[step.node]);
      for (std::size_t p = 0; p < step.first.size(); ++p) {
        if (step.first[p] == choice[step.node] && step.second[p] == choice[step.other]) {
          found = static_cast<std::int32_t>(p);
        }
      }
      choice[step.node] = found;
    }
  }
}

}  // namespace emplace
