#include <unordered_map>
#include <utility>

#include <emplace/granularity.h>

#include "base/error.h"
#include "base/options.h"
#include "base/union_find.h"

#include "graph/colocation.h"
#include "graph/copy.h"
#include "graph/graph_builder.h"
#include "graph/layers.h"
#include "graph/modules.h"

namespace emplace {
namespace {

const std::vector<std::string>& granularity_names() {
  static const std::vector<std::string> names{"op", "module", "layer"};
  return names;
}

// The graph's own groups, with those joined that have ops of one part. A view counts for what it
// shows, which may be another part's.
Colocation join_parts(const Graph& graph, const Modules& modules,
                      const std::vector<std::string>& part_of_module) {
  const Colocation own = find_colocation(graph);
  UnionFind groups(own.num_groups());
  std::unordered_map<std::string_view, GroupId> first_of_part;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const std::string_view part = part_of_module[modules.of_op[op]];
    if (graph.is_view(op) || part.empty()) continue;
    groups.unite(own.group_of[op], first_of_part.try_emplace(part, own.group_of[op]).first->second);
  }
  std::vector<std::uint32_t> labels(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) labels[op] = groups.find(own.group_of[op]);
  return number_groups(labels);
}

Graph with_colocation(const Graph& graph, const Colocation& colocation) {
  return changed_copy(graph, [&](OpId op, OpSpec& spec) {
    const auto group = colocation.ops[colocation.group_of[op]];
    spec.colocate = group.size() == 1 ? "" : std::string(graph.op_name(group[0]));
  });
}

}  // namespace

std::string granularity_name(Granularity granularity) {
  return granularity_names()[static_cast<std::size_t>(granularity)];
}

Granularity parse_granularity(const std::string& name) {
  for (const Granularity granularity :
       {Granularity::kOp, Granularity::kModule, Granularity::kLayer}) {
    if (name == granularity_name(granularity)) return granularity;
  }
  fail_option("granularity '{}'{}: expected one of: {}", name,
              suggestion(name, granularity_names()), fmt::join(granularity_names(), ", "));
}

std::shared_ptr<const Graph> keep_whole(std::shared_ptr<const Graph> graph,
                                        Granularity granularity) {
  if (granularity == Granularity::kOp) return graph;
  const Modules modules = infer_modules(*graph);
  if (!modules.named) {
    fail_option(
        "graph '{}' names no modules, so none can be kept whole: expected a field 'module' of its "
        "ops, or names such as encoder.layer.0.weight",
        graph->name());
  }
  const std::vector<std::string> parts =
      granularity == Granularity::kLayer ? layers_of_modules(modules) : modules.names;
  return std::make_shared<const Graph>(with_colocation(*graph, join_parts(*graph, modules, parts)));
}

}  // namespace emplace
