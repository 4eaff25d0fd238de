// A model as ONNX, for formats that are made of one: its own file, with all that only that has, or
// one written from the graph.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"

#include "io/onnx_parts.h"

namespace emplace {

// `model`: where the graph was read from, a file or a name of the zoo; `dims`: with which symbolic
// dimensions. Of a training step, the forward pass. Throws an Error where the file is not ONNX and
// the graph cannot be written as such.
OnnxSource onnx_source(const Graph& graph, const std::string& model,
                       const std::map<std::string, std::int64_t, std::less<>>& dims);

}  // namespace emplace
