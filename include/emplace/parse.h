// Graphs and clusters from the text of their files: what graph_json and cluster_yaml write.
#pragma once

#include <memory>
#include <string>

namespace emplace {

class Cluster;
class Graph;

// emplace.graph/1. Throws an Error that names the op and the field.
std::shared_ptr<const Graph> parse_graph(const std::string& json);
// A cluster file. Throws an Error that names the device or the rule.
std::shared_ptr<const Cluster> parse_cluster(const std::string& yaml);

}  // namespace emplace
