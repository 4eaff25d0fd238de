#include "graph/colocation.h"

#include <unordered_map>
#include <utility>

#include "base/union_find.h"

namespace emplace {

Colocation number_groups(const std::vector<std::uint32_t>& labels) {
  Colocation result;
  result.group_of.resize(labels.size());
  std::unordered_map<std::uint32_t, GroupId> numbers;
  std::vector<std::pair<GroupId, OpId>> pairs;
  pairs.reserve(labels.size());
  for (OpId op = 0; op < labels.size(); ++op) {
    const auto [entry, added] =
        numbers.try_emplace(labels[op], static_cast<GroupId>(numbers.size()));
    result.group_of[op] = entry->second;
    pairs.emplace_back(entry->second, op);
  }
  result.ops = Csr<OpId>::from_pairs(numbers.size(), pairs);
  return result;
}

Colocation find_colocation(const Graph& graph) {
  UnionFind sets(graph.num_ops());
  std::vector<OpId> first_of_name(graph.strings().size(), kNoOp);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_view(op)) sets.unite(op, graph.producer(graph.inputs(op)[0]));
    if (graph.phase(op) == Phase::kUpdate) {
      for (const TensorId tensor : graph.inputs(op)) {
        const OpId producer = graph.producer(tensor);
        if (graph.role(producer) == OpRole::kParameter) sets.unite(op, producer);
      }
    }
    if (const StringId name = graph.colocate_id(op); name != kEmptyString) {
      OpId& first = first_of_name[name];
      if (first == kNoOp) {
        first = op;
      } else {
        sets.unite(op, first);
      }
    }
  }
  std::vector<std::uint32_t> labels(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) labels[op] = sets.find(op);
  return number_groups(labels);
}

}  // namespace emplace
