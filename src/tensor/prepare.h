// A step in the operators that are divided: those of captured graphs as ONNX's, some taken apart,
// gates of one matrix told apart.
#pragma once

#include "graph/graph.h"

namespace emplace {

Graph prepare_to_divide(const Graph& graph);

}  // namespace emplace
