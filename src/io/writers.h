// Writing what people edit and other programs read. Each returns the file's text; io/file.h stores
// it.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "cost/problem.h"

#include "sim/timeline.h"

#include "tensor/plan.h"

#include "io/placement_file.h"

namespace emplace {

struct SelectionResult;  // selection/solve.h

// emplace.graph/1; read back it is the same graph, op by op and field by field. Throws an Error for
// an attribute that JSON cannot hold (a NaN).
std::string write_graph_json(const Graph& graph);

// The bytes of an ONNX model (opset 17, IR 8) of a forward graph in ONNX operators: weights without
// contents (they would lie in "<graph's name>.weights"), constants with theirs, the type of every
// value. Operators that came after opset 17 become functions of the model. Read back, ops have
// their names, modules, attributes and costs. Throws an Error that names the op for a backward or
// an update op, a constant whose "value" is missing, a tensor without a shape, an operator that
// ONNX does not have, and one that is not given what it takes.
std::string write_onnx(const Graph& graph);

// An emplace.cluster/1 file meant to be edited: it spells out the figures of every kind used, and
// read back it gives the same devices, kinds and links.
std::string write_cluster_yaml(const ClusterSpec& spec);

// emplace.placement/1.
std::string write_placement_json(const Problem& problem, const PlacementFile& file);

// What a partition file says beside the plan.
struct PartitionFile {
  std::string cluster;
  std::vector<std::string> devices;  // by worker
  Nanoseconds step = 0;
  bool fits = false;
  Bytes moved = 0;
};

// emplace.partition/1. The graph is the decomposed one that the plan is for.
std::string write_partition_json(const Graph& graph, const Descriptions& descriptions,
                                 const Plan& plan, const PartitionFile& file);

// The timeline in the Trace Event format that Perfetto and chrome://tracing open: a track for each
// device and each channel.
std::string write_trace_json(const Problem& problem, const Placement& placement,
                             const Timeline& timeline);

// The graph for Graphviz, each op in the colour of its device. Views and sources are left out:
// their edges go to what they stand for.
std::string write_dot(const Problem& problem, const Placement& placement);

// emplace.strategies/1.
std::string write_strategies_json(const SelectionResult& result);

}  // namespace emplace
