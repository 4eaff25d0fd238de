// How linear layers are cut, as Hugging Face's transformers take it.
#pragma once

#include <string>

#include "graph/graph.h"

#include "io/device_map.h"
#include "io/partition_file.h"

namespace emplace {

// By patterns of modules: "colwise" where a layer's outputs are cut, "rowwise" where its inputs
// are; "colwise_gather_output" and "rowwise_split_input" where what comes out, or goes in, is whole
// on every device. Throws an Error when no linear layer is cut, or the levels of the partition cut
// one in two ways.
std::string write_tp_plan(const Graph& graph, const SavedPartition& partition,
                          const ExportNote& note);

// The pattern of a module or parameter: "model.layers.3.mlp" -> "model.layers.*.mlp".
std::string pattern_of(const std::string& path);

}  // namespace emplace
