// Reading models and clusters, whatever their format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <emplace/cluster.h>
#include <emplace/model.h>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "graph/training.h"

namespace emplace {

// The formats one by one, from a file's (uncompressed) bytes.
Graph read_graph_json(const std::string& text);
Graph read_onnx(const std::string& bytes, const ReadOptions& options, const std::string& name);
Graph read_pipedream(const std::string& text, const std::string& name);
Model read_dnn_partitioning(const std::string& text, const std::string& name);
// `name`: of a cluster that gives itself none.
Cluster read_cluster_yaml(const std::string& text, const std::string& name = "cluster");

}  // namespace emplace
