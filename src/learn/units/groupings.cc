// Merges groups of ops that must share a device into units, greedily, by rules of ColocRL
// (Mirhoseini et al. 2017) and Placeto (Addanki et al. 2019).
//
// A disjoint-set forest over groups; every root knows its time, the devices that all of its members
// may use, and the bytes that it exchanges with every other root. Invariant: the set of allowed
// devices of a root is never empty, since a merge that would leave none is refused; so every unit
// can be placed. Which merges come first is a heuristic, with nothing exact about it; ties go by
// time, then by index, so that the result depends on the problem alone.
//
// A merge moves the smaller neighbour map into the larger: O(E log^2 V) for all of them together.
// merge_sole_consumers goes over all edges until nothing changes, which takes a few passes where
// groups are in topological order.
#include "learn/units/groupings.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "graph/modules.h"

namespace emplace::learn {
namespace {

// Sets of groups that grow together, with what they exchange.
class Merger {
 public:
  explicit Merger(const Problem& problem)
      : units_(problem, singletons(problem)),
        parent_(units_.size()),
        time_(units_.size()),
        exchanged_(units_.size()),
        allowed_(units_.size()),
        count_(units_.size()) {
    std::iota(parent_.begin(), parent_.end(), 0U);
    for (UnitId unit = 0; unit < units_.size(); ++unit) {
      time_[unit] = units_.mean_duration(unit);
      total_ += time_[unit];
      const auto devices = units_.allowed_devices(unit);
      allowed_[unit].assign(devices.begin(), devices.end());
      const auto successors = units_.successors(unit);
      for (std::size_t i = 0; i < successors.size(); ++i) {
        exchanged_[unit][successors[i]] += units_.successor_bytes(unit)[i];
        exchanged_[successors[i]][unit] += units_.successor_bytes(unit)[i];
      }
    }
  }

  UnitId find(UnitId unit) {
    while (parent_[unit] != unit) unit = parent_[unit] = parent_[parent_[unit]];
    return unit;
  }
  UnitId count() const { return count_; }
  UnitId initial_count() const { return units_.size(); }
  Nanoseconds time(UnitId root) const { return time_[root]; }
  Nanoseconds total() const { return total_; }
  const UnitGraph& groups() const { return units_; }

  bool exchange(UnitId a, UnitId b) { return exchanged_[find(a)].contains(find(b)); }

  // The sets, if they are two, some device may run both, and they take no more than `most`
  // together.
  bool merge(UnitId a, UnitId b, std::optional<Nanoseconds> most = {}) {
    a = find(a);
    b = find(b);
    if (a == b || (most && time_[a] + time_[b] > *most)) return false;
    std::vector<DeviceId> common;
    std::set_intersection(allowed_[a].begin(), allowed_[a].end(), allowed_[b].begin(),
                          allowed_[b].end(), std::back_inserter(common));
    if (common.empty()) return false;
    if (exchanged_[a].size() < exchanged_[b].size()) std::swap(a, b);
    parent_[b] = a;
    time_[a] += time_[b];
    allowed_[a] = std::move(common);
    for (const auto& [other, bytes] : exchanged_[b]) {
      if (other != a) exchanged_[a][other] += bytes;
      exchanged_[other].erase(b);
      if (other != a) exchanged_[other][a] += bytes;
    }
    exchanged_[b].clear();
    --count_;
    return true;
  }

  // The neighbour that it exchanges most with and may be merged with; the shorter of equals.
  bool merge_with_nearest(UnitId root) {
    std::vector<std::pair<Bytes, UnitId>> neighbours;
    for (const auto& [other, bytes] : exchanged_[root]) neighbours.emplace_back(bytes, other);
    std::sort(neighbours.begin(), neighbours.end(), [this](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first > b.first;
      return time_[a.second] != time_[b.second] ? time_[a.second] < time_[b.second]
                                                : a.second < b.second;
    });
    return std::any_of(neighbours.begin(), neighbours.end(),
                       [&](const auto& neighbour) { return merge(root, neighbour.second); });
  }

  std::vector<std::uint32_t> labels() {
    std::vector<std::uint32_t> result(units_.size());
    for (UnitId unit = 0; unit < units_.size(); ++unit) result[unit] = find(unit);
    return result;
  }

 private:
  static std::vector<std::uint32_t> singletons(const Problem& problem) {
    std::vector<std::uint32_t> labels(problem.num_groups());
    std::iota(labels.begin(), labels.end(), 0U);
    return labels;
  }

  UnitGraph units_;  // one a group, so units are groups here
  std::vector<UnitId> parent_;
  std::vector<Nanoseconds> time_;
  std::vector<std::map<UnitId, Bytes>> exchanged_;  // of roots, with roots
  std::vector<std::vector<DeviceId>> allowed_;
  UnitId count_;
  Nanoseconds total_ = 0;
};

// Sets that exchange nothing with any other are joined in their order.
void join_strangers(Merger& merger, std::int64_t most_units) {
  std::optional<UnitId> last;
  for (UnitId unit = 0; unit < merger.initial_count(); ++unit) {
    if (static_cast<std::int64_t>(merger.count()) <= most_units) return;
    if (merger.find(unit) != unit) continue;
    if (!last || !merger.merge(*last, unit)) last = unit;
    last = merger.find(*last);
  }
}

void merge_smallest(Merger& merger, std::int64_t most_units) {
  std::set<std::pair<Nanoseconds, UnitId>> queue;
  for (UnitId unit = 0; unit < merger.initial_count(); ++unit) {
    if (merger.find(unit) == unit) queue.emplace(merger.time(unit), unit);
  }
  while (static_cast<std::int64_t>(merger.count()) > most_units && !queue.empty()) {
    const auto [time, unit] = *queue.begin();
    queue.erase(queue.begin());
    // It has grown, or is part of another, since it was put here.
    if (merger.find(unit) != unit || merger.time(unit) != time) continue;
    if (merger.merge_with_nearest(unit)) {
      const UnitId root = merger.find(unit);
      queue.emplace(merger.time(root), root);
    }
  }
  join_strangers(merger, most_units);
}

// A unit that hands its results to one other only joins it; again and again, since a merge may
// leave a unit with one consumer where there were two.
void merge_sole_consumers(Merger& merger, Nanoseconds most) {
  const UnitGraph& groups = merger.groups();
  // The consumers of a set are found from its members' lists, which stay as they are.
  std::vector<std::vector<UnitId>> members(groups.size());
  for (UnitId unit = 0; unit < groups.size(); ++unit) members[unit] = {unit};
  for (bool changed = true; changed;) {
    changed = false;
    for (UnitId unit = groups.size(); unit-- > 0;) {
      if (merger.find(unit) != unit) continue;
      std::optional<UnitId> consumer;
      bool sole = true;
      for (const UnitId member : members[unit]) {
        for (const UnitId next : groups.successors(member)) {
          const UnitId root = merger.find(next);
          if (root == unit) continue;
          sole = sole && (!consumer || *consumer == root);
          consumer = root;
        }
      }
      if (!sole || !consumer || !merger.merge(unit, *consumer, most)) continue;
      changed = true;
      const UnitId root = merger.find(unit);
      const UnitId absorbed = root == unit ? *consumer : unit;
      members[root].insert(members[root].end(), members[absorbed].begin(), members[absorbed].end());
      members[absorbed].clear();
    }
  }
}

// What the op reads of parameters, itself or through views.
std::vector<OpId> parameters_read(const Graph& graph, OpId op) {
  std::vector<OpId> result;
  for (const TensorId tensor : graph.inputs(op)) {
    OpId source = graph.producer(tensor);
    while (graph.is_view(source) && !graph.inputs(source).empty()) {
      source = graph.producer(graph.inputs(source)[0]);
    }
    if (graph.role(source) == OpRole::kParameter) result.push_back(source);
  }
  return result;
}

// Ops of one module that follow each other, as a layer's do, until a parameter is read again: then
// the next step of an unrolled network has begun.
void merge_modules(Merger& merger, const Problem& problem, Nanoseconds most) {
  const Graph& graph = problem.graph();
  const Modules modules = infer_modules(graph);
  std::optional<OpId> last;
  std::set<OpId> read;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op) || graph.is_view(op)) continue;  // views go with what they are views of
    const std::vector<OpId> parameters = parameters_read(graph, op);
    const bool again = std::any_of(parameters.begin(), parameters.end(),
                                   [&](OpId parameter) { return read.contains(parameter); });
    const bool same =
        last && modules.of_op[op] == modules.of_op[*last] && graph.phase(op) == graph.phase(*last);
    if (same && !again) {
      if (merger.exchange(problem.group_of(*last), problem.group_of(op)))
        merger.merge(problem.group_of(*last), problem.group_of(op), most);
    } else {
      read.clear();
    }
    read.insert(parameters.begin(), parameters.end());
    last = op;
  }
}

}  // namespace

UnitGraph group_by_colocation(const Problem& problem) {
  std::vector<std::uint32_t> labels(problem.num_groups());
  std::iota(labels.begin(), labels.end(), 0U);
  return UnitGraph(problem, labels);
}

UnitGraph group_as_colocrl(const Problem& problem, const ColocationRules& rules) {
  Merger merger(problem);
  const auto most =
      static_cast<Nanoseconds>(rules.largest_share * static_cast<double>(merger.total()));
  merge_sole_consumers(merger, most);
  if (rules.by_module) merge_modules(merger, problem, most);
  merge_smallest(merger, rules.most_units);
  return UnitGraph(problem, merger.labels());
}

UnitGraph group_to_size(const Problem& problem, std::int64_t most_units) {
  Merger merger(problem);
  merge_smallest(merger, most_units);
  return UnitGraph(problem, merger.labels());
}

}  // namespace emplace::learn
