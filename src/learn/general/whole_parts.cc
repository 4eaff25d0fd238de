#include "learn/general/whole_parts.h"

#include <algorithm>

#include "base/union_find.h"

#include "graph/modules.h"

namespace emplace::learn {
namespace {

PartOfGroup parts_by_longest_op(const Problem& problem,
                                const std::vector<std::uint32_t>& part_of_op) {
  PartOfGroup result;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    const auto ops = problem.group_ops(group);
    const OpId longest = *std::max_element(ops.begin(), ops.end(), [&](OpId a, OpId b) {
      return problem.mean_duration(a) < problem.mean_duration(b);
    });
    result.push_back(part_of_op[longest]);
  }
  return result;
}

}  // namespace

std::vector<PartOfGroup> whole_modules(const Problem& problem) {
  const Modules modules = infer_modules(problem.graph());
  std::vector<PartOfGroup> result{parts_by_longest_op(problem, modules.of_op)};
  const RecurrentLayers layers = find_recurrent_layers(problem.graph(), modules);
  if (layers.count == 0) return result;
  std::vector<std::uint32_t> layer_of_op;
  for (const std::uint32_t module : modules.of_op) {
    layer_of_op.push_back(layers.of_module[module]);
  }
  result.push_back(parts_by_longest_op(problem, layer_of_op));
  return result;
}

PartOfGroup parameter_sharers(const Problem& problem) {
  const Graph& graph = problem.graph();
  UnionFind sets(problem.num_groups());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.role(op) != OpRole::kParameter) continue;
    for (const TensorId tensor : graph.outputs(op)) {
      for (const OpId reader : graph.consumers(tensor)) {
        sets.unite(problem.group_of(op), problem.group_of(reader));
      }
    }
  }
  PartOfGroup result;
  for (GroupId group = 0; group < problem.num_groups(); ++group) result.push_back(sets.find(group));
  return result;
}

}  // namespace emplace::learn
