#include "graph/module_tree.h"

#include <unordered_map>

namespace emplace {

ModuleTree::ModuleTree(const Graph& graph, const Modules& modules) : nodes_(1) {
  std::unordered_map<std::string, std::uint32_t> found{{"", kRoot}};
  std::vector<std::uint32_t> node_of_module;
  for (const std::string& path : modules.names) {
    std::uint32_t node = kRoot;
    std::size_t begin = 0;
    while (begin < path.size()) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      const std::string prefix = path.substr(0, end);
      const auto [at, added] = found.try_emplace(prefix, size());
      if (added) {
        nodes_[node].children.push_back(at->second);
        nodes_.push_back({.path = prefix, .name = path.substr(begin, end - begin), .parent = node});
      }
      node = at->second;
      begin = end + 1;
    }
    node_of_module.push_back(node);
  }
  of_op_.resize(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    of_op_[op] = node_of_module[modules.of_op[op]];
    nodes_[of_op_[op]].ops.push_back(op);
  }
}

}  // namespace emplace
