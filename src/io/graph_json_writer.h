// emplace.graph/1 out.
#pragma once

#include <string>

#include "graph/graph.h"

namespace emplace {

// The file's text; read back it is the same graph, op by op and field by field. Throws an Error for
// an attribute that JSON cannot hold (a NaN).
std::string write_graph_json(const Graph& graph);

}  // namespace emplace
