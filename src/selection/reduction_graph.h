// A selection problem while it is being reduced: the changes that keep its optimum, each of which
// is written down so that a choice for what is left can be turned into one for all.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "selection/reduced_problem.h"
#include "selection/selection_problem.h"

namespace emplace {

class ReductionGraph {
 public:
  explicit ReductionGraph(const SelectionProblem& problem);

  std::int32_t num_nodes() const { return static_cast<std::int32_t>(nodes_.size()); }
  const ReducedNode& node(std::int32_t node) const { return nodes_[node]; }
  bool alive(std::int32_t node) const { return alive_[node] != 0; }
  std::span<const std::int32_t> edges_of(std::int32_t node) const { return edges_of_[node]; }
  std::int32_t degree(std::int32_t node) const {
    return static_cast<std::int32_t>(edges_of_[node].size());
  }
  std::int32_t num_edges() const { return static_cast<std::int32_t>(edges_.size()); }
  const ReducedEdge& edge(std::int32_t edge) const { return edges_[edge]; }
  bool edge_alive(std::int32_t edge) const { return edges_[edge].a >= 0; }
  // The table as seen from one end: entry (i, j) for strategy i of `node` and j of the other end.
  std::int64_t entry(const ReducedEdge& edge, std::int32_t node, std::int32_t i,
                     std::int32_t j) const {
    return edge.a == node ? edge.table[static_cast<std::size_t>(i) * nodes_[edge.b].size() + j]
                          : edge.table[static_cast<std::size_t>(j) * nodes_[edge.b].size() + i];
  }

  // Keeps only some strategies of a node, given in order. None: the problem has no solution.
  void keep_strategies(std::int32_t node, std::span<const std::int32_t> kept);
  // Adds to a node's costs, which may become forbidden.
  void add_cost(std::int32_t node, std::int32_t strategy, std::int64_t cost);
  std::vector<std::int64_t>& table(std::int32_t edge) { return edges_[edge].table; }
  void remove_edge(std::int32_t edge);
  // Takes out a node that has one strategy and no edges.
  void settle(std::int32_t node);
  // Makes `node` stand for `other` too: strategy p of it is now the pair pairs[p].
  void absorb(std::int32_t node, std::int32_t other,
              std::span<const std::pair<std::int32_t, std::int32_t>> pairs);
  // Takes out a node that uses nothing and has two neighbours, which an edge joins from then on.
  void bypass(std::int32_t node);
  // Forgets what nodes use at times at which all together can never use too much.
  void drop_unbinding_usage();
  // Sums up what a node uses into pieces that do not overlap.
  void normalise(std::int32_t node);

  // What is left at every time for the pieces, as of now.
  const std::vector<std::int64_t>& slack();
  void declare_infeasible() { infeasible_ = true; }
  bool infeasible() const { return infeasible_; }
  // Usages were rounded up to fit in 64 bits: what is found is feasible, but bounds are no bounds.
  bool rounded() const { return rounded_; }

  // Nodes and edges that changed since they were last taken.
  std::vector<std::int32_t> take_changed_nodes();
  std::vector<std::int32_t> take_changed_edges();
  // The same nodes for another listener.
  std::vector<std::int32_t> take_stale_nodes();

  // What is left, and its nodes' numbers here.
  ReducedProblem compact(std::vector<std::int32_t>& numbers);
  // `choice` has a strategy for each node here that is left; the others are filled in.
  void undo(std::vector<std::int32_t>& choice) const;
  // The other way: strategies of the problem become those of what is left, or, where they were
  // dropped, some that are.
  void redo(std::vector<std::int32_t>& choice) const;

 private:
  struct Step {
    enum class Kind { kKeep, kSettle, kAbsorb, kBypass };
    Kind kind;
    std::int32_t node;
    std::int32_t other = -1;
    std::int32_t third = -1;
    std::vector<std::int32_t> first = {};
    std::vector<std::int32_t> second = {};
  };

  void load_times(const SelectionProblem& problem);
  void load_pieces(const SelectionProblem& problem, int shift);
  void load_edges(const SelectionProblem& problem);
  void connect(std::int32_t a, std::int32_t b, std::vector<std::int64_t> table);
  void touch(std::int32_t node);
  void touch_edge(std::int32_t edge);
  static std::uint64_t key(std::int32_t a, std::int32_t b);
  void reindex(std::int32_t edge, std::int32_t node, std::span<const std::int32_t> from,
               std::int32_t old_size);
  std::vector<std::int64_t> seen_from(const ReducedEdge& edge, std::int32_t node) const;
  void use_less(std::int32_t begin, std::int32_t end, std::int64_t amount);

  std::vector<ReducedNode> nodes_;
  std::vector<char> alive_;
  std::vector<ReducedEdge> edges_;  // a is -1 for one that is gone
  std::vector<std::vector<std::int32_t>> edges_of_;
  std::unordered_map<std::uint64_t, std::int32_t> edge_between_;
  std::vector<std::size_t> normal_pieces_;  // of each node, when it was last normalised
  std::vector<std::int64_t> slack_;
  std::vector<std::int64_t> slack_change_;  // differences from one time to the next
  std::int64_t constant_ = 0;
  bool infeasible_ = false;
  bool rounded_ = false;
  std::vector<Step> steps_;
  std::vector<std::int32_t> changed_nodes_;
  std::vector<char> node_changed_;
  std::vector<char> stale_;
  std::vector<std::int32_t> changed_edges_;
  std::vector<char> edge_changed_;
};

}  // namespace emplace
