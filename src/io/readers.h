// Reading models and clusters, whatever their format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "graph/training.h"

namespace emplace {

struct ReadOptions {
  std::map<std::string, std::int64_t, std::less<>> dims = {};  // ONNX: symbolic dimensions
  // A file's forward graph becomes its training step; a zoo model is built with training=true.
  bool training = false;
  // Of that step, and of a zoo model that is one by itself.
  TrainingOptions training_options = {};
  // Its optimizer was chosen, and so replaces a zoo model's own.
  bool optimizer_chosen = false;
};

struct Model {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster = nullptr;  // where the file brings one
};

// A file, by content, not by name: emplace.graph/1, ONNX, dnn-partitioning or PipeDream, each also
// gzipped; or a name that is built (zoo/registry.h): "zoo:resnet-50:batch=64", "family:ptb:seed=3".
// Errors name the file or the model.
Model read_model(const std::string& path_or_name, const ReadOptions& options = {});

// A file, or a preset's name (cluster/presets.h).
std::shared_ptr<const Cluster> read_cluster(const std::string& path_or_preset);

// The formats one by one, from a file's (uncompressed) bytes.
Graph read_graph_json(const std::string& text);
Graph read_onnx(const std::string& bytes, const ReadOptions& options, const std::string& name);
Graph read_pipedream(const std::string& text, const std::string& name);
Model read_dnn_partitioning(const std::string& text, const std::string& name);
Cluster read_cluster_yaml(const std::string& text);

}  // namespace emplace
