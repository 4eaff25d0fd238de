// Modules nested by the dots in their names: "encoder.layer.3" is in "encoder.layer", that in
// "encoder", and that in the root, whose name is empty.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/modules.h"

namespace emplace {

class ModuleTree {
 public:
  struct Node {
    std::string path;  // "encoder.layer.3"
    std::string name;  // "3"
    std::uint32_t parent = 0;
    std::vector<std::uint32_t> children = {};  // in the order in which the forward pass meets them
    std::vector<OpId> ops = {};                // its own, not those of its children
  };

  ModuleTree(const Graph& graph, const Modules& modules);

  static constexpr std::uint32_t kRoot = 0;
  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const Node& node(std::uint32_t node) const { return nodes_[node]; }  // parents before children
  std::uint32_t of_op(OpId op) const { return of_op_[op]; }

 private:
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> of_op_;
};

}  // namespace emplace
