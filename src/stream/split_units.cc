// Units are the strongly connected components (Tarjan, SIAM J. Comput. 1972) of the groups under
// "comes before": whatever is on a cycle can never be in different parts, as data would go back.
// What is left is a partial order, numbered topologically. Backward edges count reversed, and only
// where at least one of the two groups has no forward ops: a group with both is ordered by its
// forward ops, and its backward ones run the other way by themselves.
//
// `find_coarse_split_units` joins groups first, by rule: sources with their first reader, backward
// ops with the forward ops that they belong to. That leaves out splits, and the best may be among
// them; the units stay valid because cycles that the joining makes are joined as well. O(ops +
// edges log edges). The order is Tarnawski et al.'s, NeurIPS 2020; the rules are ours.
#include "stream/split_units.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "base/union_find.h"

namespace emplace {
namespace {

using Edge = std::pair<std::uint32_t, std::uint32_t>;

bool is_forward(const Graph& graph, OpId op) {
  return graph.phase(op) == Phase::kForward;
}

// Calls visit(u, v) where op v waits for op u.
template <class Visit>
void for_each_dependency(const Graph& graph, Visit&& visit) {
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const TensorId tensor : graph.inputs(op)) visit(graph.producer(tensor), op);
    for (const OpId before : graph.after(op)) visit(before, op);
  }
}

// By group, whether it has forward ops.
std::vector<std::uint8_t> forward_groups(const Problem& problem) {
  std::vector<std::uint8_t> result(problem.num_groups(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    if (is_forward(problem.graph(), op)) result[problem.group_of(op)] = 1;
  }
  return result;
}

// Between what `labels` makes of the groups; sorted, distinct, without loops.
std::vector<Edge> order_edges(const Problem& problem, const std::vector<std::uint32_t>& labels) {
  const Graph& graph = problem.graph();
  const std::vector<std::uint8_t> forward = forward_groups(problem);
  std::vector<Edge> edges;
  for_each_dependency(graph, [&](OpId u, OpId v) {
    if (graph.phase(u) != graph.phase(v) || graph.phase(u) == Phase::kUpdate) return;
    std::uint32_t from = problem.group_of(u);
    std::uint32_t to = problem.group_of(v);
    if (!is_forward(graph, u)) {
      if (forward[from] != 0 && forward[to] != 0) return;
      std::swap(from, to);
    }
    from = labels[from];
    to = labels[to];
    if (from != to) edges.emplace_back(from, to);
  });
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

// Strongly connected components (Tarjan, SIAM J. Comput. 1972), each labelled by its lowest vertex.
class Components {
 public:
  explicit Components(const Csr<std::uint32_t>& successors)
      : successors_(successors),
        index_(successors.size(), kNew),
        low_(successors.size(), 0),
        done_(successors.size(), 0),
        labels_(successors.size(), 0) {}

  std::vector<std::uint32_t> find() {
    for (std::uint32_t vertex = 0; vertex < index_.size(); ++vertex) {
      if (index_[vertex] == kNew) visit(vertex);
    }
    return std::move(labels_);
  }

 private:
  static constexpr std::uint32_t kNew = ~std::uint32_t{0};
  struct Frame {
    std::uint32_t vertex;
    std::uint32_t next;  // of its successors
  };

  void enter(std::uint32_t vertex) {
    index_[vertex] = low_[vertex] = count_++;
    open_.push_back(vertex);
    frames_.push_back({vertex, 0});
  }

  void visit(std::uint32_t root) {
    enter(root);
    while (!frames_.empty()) {
      const auto [vertex, next] = frames_.back();
      if (next < successors_[vertex].size()) {
        ++frames_.back().next;
        const std::uint32_t to = successors_[vertex][next];
        if (index_[to] == kNew) {
          enter(to);
        } else if (done_[to] == 0) {
          low_[vertex] = std::min(low_[vertex], index_[to]);
        }
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) {
        std::uint32_t& above = low_[frames_.back().vertex];
        above = std::min(above, low_[vertex]);
      }
      if (low_[vertex] == index_[vertex]) close(vertex);
    }
  }

  void close(std::uint32_t vertex) {
    std::size_t first = open_.size();
    std::uint32_t lowest = vertex;
    do {
      --first;
      lowest = std::min(lowest, open_[first]);
    } while (open_[first] != vertex);
    for (std::size_t i = first; i < open_.size(); ++i) {
      done_[open_[i]] = 1;
      labels_[open_[i]] = lowest;
    }
    open_.resize(first);
  }

  const Csr<std::uint32_t>& successors_;
  std::vector<std::uint32_t> index_;
  std::vector<std::uint32_t> low_;
  std::vector<std::uint8_t> done_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint32_t> open_;
  std::vector<Frame> frames_;
  std::uint32_t count_ = 0;
};

// By label, its place in the order that takes the lowest possible label first; of no meaning for
// numbers that are no label.
std::vector<std::uint32_t> topological_places(const std::vector<std::uint32_t>& labels,
                                              const std::vector<Edge>& edges) {
  const std::size_t size = labels.size();
  const auto successors = Csr<std::uint32_t>::from_pairs(size, edges);
  std::vector<std::uint32_t> waits(size, 0);
  for (const auto& [from, to] : edges) ++waits[to];
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t group = 0; group < size; ++group) {
    if (labels[group] == group && waits[group] == 0) ready.push(group);
  }
  std::vector<std::uint32_t> place(size, 0);
  std::uint32_t next = 0;
  while (!ready.empty()) {
    const std::uint32_t label = ready.top();
    ready.pop();
    place[label] = next++;
    for (const std::uint32_t to : successors[label]) {
      if (--waits[to] == 0) ready.push(to);
    }
  }
  return place;
}

// Units of the groups that `together` has joined, and of those that cycles join.
SplitUnits units_of(const Problem& problem, UnionFind together) {
  const std::uint32_t groups = problem.num_groups();
  std::vector<std::uint32_t> labels(groups);
  for (std::uint32_t group = 0; group < groups; ++group) labels[group] = together.find(group);
  const auto successors = Csr<std::uint32_t>::from_pairs(groups, order_edges(problem, labels));
  const std::vector<std::uint32_t> components = Components(successors).find();
  for (std::uint32_t& label : labels) label = components[label];

  std::vector<Edge> edges = order_edges(problem, labels);
  const std::vector<std::uint32_t> place = topological_places(labels, edges);
  SplitUnits result;
  std::uint32_t count = 0;
  for (std::uint32_t group = 0; group < groups; ++group) {
    result.of_group.push_back(place[labels[group]]);
    count = std::max(count, result.of_group.back() + 1);
  }
  for (auto& [from, to] : edges) {
    from = place[from];
    to = place[to];
  }
  std::sort(edges.begin(), edges.end());
  result.successors = Csr<std::uint32_t>::from_pairs(count, edges);
  return result;
}

// Forward.
bool takes_no_time(const Problem& problem, GroupId group) {
  for (const OpId op : problem.group_ops(group)) {
    if (!is_forward(problem.graph(), op)) continue;
    for (const DeviceId device : problem.allowed_devices(group)) {
      if (problem.duration(op, device) > 0) return false;
    }
  }
  return true;
}

bool reads_others(const Problem& problem, GroupId group) {
  const Graph& graph = problem.graph();
  const auto other = [&](OpId op) { return problem.group_of(op) != group; };
  for (const OpId op : problem.group_ops(group)) {
    if (!is_forward(graph, op)) continue;
    for (const TensorId tensor : graph.inputs(op)) {
      if (other(graph.producer(tensor))) return true;
    }
    for (const OpId before : graph.after(op)) {
      if (other(before)) return true;
    }
  }
  return false;
}

// In another group, of what the group's forward ops write; kNoOp: none.
OpId first_forward_reader(const Problem& problem, GroupId group) {
  const Graph& graph = problem.graph();
  OpId first = kNoOp;
  const auto look_at = [&](OpId reader) {
    if (problem.group_of(reader) != group && is_forward(graph, reader)) {
      first = std::min(first, reader);
    }
  };
  for (const OpId op : problem.group_ops(group)) {
    if (!is_forward(graph, op)) continue;
    for (const TensorId tensor : graph.outputs(op)) {
      for (const OpId reader : graph.consumers(tensor)) look_at(reader);
    }
  }
  return first;
}

// A group whose forward ops take no time and read nothing, such as a parameter with its updates,
// with the first that reads it.
void join_sources(const Problem& problem, UnionFind& together) {
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (!takes_no_time(problem, group) || reads_others(problem, group)) continue;
    const OpId reader = first_forward_reader(problem, group);
    if (reader != kNoOp) together.unite(group, problem.group_of(reader));
  }
}

// Each group without forward ops with the last forward op that it reads from, but never with a
// later one than what its gradients come from are with: so the order stays one.
void join_backward(const Problem& problem, UnionFind& together) {
  const Graph& graph = problem.graph();
  const std::vector<std::uint8_t> forward = forward_groups(problem);
  // By op that is not forward: the forward op that it is with; kNoOp: none.
  std::vector<OpId> partner(graph.num_ops(), kNoOp);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (is_forward(graph, op)) continue;
    OpId last_read = kNoOp;
    OpId earliest = kNoOp;
    const auto look_at = [&](OpId before) {
      if (is_forward(graph, before)) {
        if (last_read == kNoOp || before > last_read) last_read = before;
      } else {
        earliest = std::min(earliest, partner[before]);
      }
    };
    for (const TensorId tensor : graph.inputs(op)) {
      if (!graph.is_source(graph.producer(tensor))) look_at(graph.producer(tensor));
    }
    for (const OpId before : graph.after(op)) look_at(before);
    partner[op] = std::min(last_read, earliest);
  }
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (forward[group] != 0) continue;
    OpId with = kNoOp;
    for (const OpId op : problem.group_ops(group)) with = std::min(with, partner[op]);
    if (with != kNoOp) together.unite(group, problem.group_of(with));
  }
}

}  // namespace

SplitUnits find_split_units(const Problem& problem) {
  return units_of(problem, UnionFind(problem.num_groups()));
}

SplitUnits find_coarse_split_units(const Problem& problem) {
  UnionFind together(problem.num_groups());
  join_sources(problem, together);
  join_backward(problem, together);
  return units_of(problem, std::move(together));
}

std::vector<std::uint32_t> numbered_order(const SplitUnits& units) {
  std::vector<std::uint32_t> order(units.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

std::vector<std::uint32_t> depth_first_order(const SplitUnits& units, Rng& rng) {
  std::vector<std::uint32_t> waits(units.size(), 0);
  for (const std::uint32_t to : units.successors.values()) ++waits[to];
  std::vector<std::uint32_t> ready;
  for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
    if (waits[unit] == 0) ready.push_back(unit);
  }
  rng.shuffle(ready);
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> freed;
  while (!ready.empty()) {
    const std::uint32_t unit = ready.back();
    ready.pop_back();
    order.push_back(unit);
    freed.clear();
    for (const std::uint32_t to : units.successors[unit]) {
      if (--waits[to] == 0) freed.push_back(to);
    }
    rng.shuffle(freed);
    ready.insert(ready.end(), freed.begin(), freed.end());
  }
  return order;
}

}  // namespace emplace
