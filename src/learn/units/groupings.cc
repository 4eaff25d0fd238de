// Merges groups of ops that must share a device into units, greedily, by rules of ColocRL
// (Mirhoseini et al. 2017) and Placeto (Addanki et al. 2019).
//
// Which merges come first is a heuristic, with nothing exact about it; ties go by time, then by
// index, so that the result depends on the problem alone. merge_sole_consumers goes over all edges
// until nothing changes, which takes a few passes where groups are in topological order.
#include "learn/units/groupings.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "graph/modules.h"

#include "learn/nn/deadline.h"
#include "learn/units/merge_to_size.h"

namespace emplace::learn {
namespace {

// A unit that hands its results to one other only joins it; again and again, since a merge may
// leave a unit with one consumer where there were two.
void merge_sole_consumers(Merger& merger, const SetLimits& limits) {
  const UnitGraph& groups = merger.groups();
  for (bool changed = true; changed;) {
    changed = false;
    for (UnitId unit = groups.size(); unit-- > 0;) {
      check_time_at(unit);
      if (!merger.exists(unit)) continue;
      std::optional<UnitId> consumer;
      bool sole = true;
      for (const UnitId member : merger.members(unit)) {
        for (const UnitId next : groups.successors(member)) {
          const UnitId set = merger.set_of(next);
          if (set == unit) continue;
          sole = sole && (!consumer || *consumer == set);
          consumer = set;
        }
      }
      if (sole && consumer && merger.merge(unit, *consumer, limits)) changed = true;
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
void merge_modules(Merger& merger, const Problem& problem, const SetLimits& limits) {
  const Graph& graph = problem.graph();
  const Modules modules = infer_modules(graph);
  std::optional<OpId> last;
  std::set<OpId> read;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    check_time_at(op);
    if (graph.is_source(op) || graph.is_view(op)) continue;  // views go with what they are views of
    const std::vector<OpId> parameters = parameters_read(graph, op);
    const bool again = std::any_of(parameters.begin(), parameters.end(),
                                   [&](OpId parameter) { return read.contains(parameter); });
    const bool same =
        last && modules.of_op[op] == modules.of_op[*last] && graph.phase(op) == graph.phase(*last);
    if (same && !again) {
      const UnitId before = merger.set_of(problem.group_of(*last));
      const UnitId own = merger.set_of(problem.group_of(op));
      if (merger.exchange(before, own)) merger.merge(before, own, limits);
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
  Merger merger(problem, rules.acyclic);
  const auto share =
      static_cast<Nanoseconds>(rules.largest_share * static_cast<double>(merger.total_time()));
  const SetLimits limits{
      .time = rules.largest_share > 0 ? share : useful_share(merger, rules.most_units),
      .memory = std::numeric_limits<Bytes>::max() / 2};
  merge_sole_consumers(merger, limits);
  if (rules.by_module) merge_modules(merger, problem, limits);
  merge_to_size(merger, rules.most_units);
  return UnitGraph(problem, merger.labels());
}

UnitGraph group_to_size(const Problem& problem, std::int64_t most_units) {
  Merger merger(problem, /*acyclic=*/false);
  merge_to_size(merger, most_units);
  return UnitGraph(problem, merger.labels());
}

UnitGraph group_to_size_acyclic(const Problem& problem, std::int64_t most_units) {
  Merger merger(problem, /*acyclic=*/true);
  merge_to_size(merger, most_units);
  return UnitGraph(problem, merger.labels());
}

// Each joins the last piece of its label. What comes before it is in few pieces by then, so the
// search for a path between the two is short.
UnitGraph group_as_labelled(const Problem& problem,
                            const std::vector<std::uint32_t>& label_of_group,
                            std::int64_t most_units) {
  Merger merger(problem, /*acyclic=*/true);
  const SetLimits any{.time = std::numeric_limits<Nanoseconds>::max() / 2,
                      .memory = std::numeric_limits<Bytes>::max() / 2};
  std::map<std::uint32_t, UnitId> last;  // by label, some group of its last piece
  for (const UnitId group : merger.sets()) {
    check_time_at(group);
    const auto [piece, is_first] = last.emplace(label_of_group[group], group);
    if (!is_first) merger.merge(merger.set_of(piece->second), group, any);
    piece->second = group;
  }
  merge_to_size(merger, most_units);
  return UnitGraph(problem, merger.labels());
}

}  // namespace emplace::learn
