// What is where, by modules, as a tree that is opened where a module is on several devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

#include "graph/graph.h"

namespace emplace {

// What is placed: by op, a device and what else is known.
struct PlacedOps {
  std::vector<std::string> devices;   // their names
  std::vector<std::uint32_t> device;  // by op
};

struct PlacementTree {
  struct Row {
    int depth = 0;
    std::string name;  // of the module; "0-5" for neighbours that are alike
    std::int64_t ops = 0;
    Bytes weights = 0;                    // 0 where the graph does not say
    std::vector<std::int64_t> on_device;  // ops, by device
  };
  std::vector<std::string> devices;
  std::vector<Row> rows;  // the first is the whole
};

// Modules are opened down to `depth` where they are on several devices; sources that only carry
// numbers (inputs, constants) are left out.
PlacementTree placement_tree(const Graph& graph, const PlacedOps& placed, int depth);

// `colours`: devices in colours of their own, by escape sequences of terminals.
std::string to_text(const PlacementTree& tree, bool colours);
std::string to_json(const PlacementTree& tree);

// A graph of nothing but the names of a placement's ops, which say their modules where exporters
// wrote paths: for a placement without its model.
Graph graph_of_names(const std::string& name, const std::vector<std::string>& ops);

}  // namespace emplace
