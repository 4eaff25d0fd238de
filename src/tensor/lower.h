// A plan as an ordinary graph: a piece of every op for every worker, on the worker's device, and
// what moves between them. The simulator times it, the timeline shows it, a runtime can run it.
//
// - "NAME@w" is worker w's piece of op NAME: an op of the same type with the attributes that hold
//   for it. Pieces of sources carry `region_begin` and `region_shape`: which part of what whole.
// - PartSlice is the block of its input that `begin` and `size` say; a view, where the input lies.
//   Sent to another device it is a transfer of just that block.
// - PartJoin puts blocks together, in one launch: input i begins at `begin_i` of the output.
// - PartSum, PartMax, PartMin and PartProd reduce partial results.
// - PartStore writes blocks into a weight, its first input: what others changed of it, where an
//   update is divided further than the weight. Input i begins at `begin_i` of the weight.
// What was fetched of a tensor that the plan holds serves all who need it in the step.
// Blocks that were there long before they are needed are sent only shortly before, so that they do
// not take memory all the while (Tofu's control dependencies).
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

#include "tensor/network.h"
#include "tensor/plan.h"

namespace emplace {

// Where a tensor of the original graph is.
struct KeptTensor {
  std::vector<TensorId> pieces;      // by worker, of the lowered graph
  std::vector<tdl::Region> regions;  // by worker; none for a tensor without a shape
  bool partial = false;              // the pieces are partial sums, which were added to others
};

struct LoweredGraph {
  Graph graph;
  std::vector<Worker> worker_of;    // by op
  std::vector<KeptTensor> tensors;  // by tensor of the original graph
  Bytes moved = 0;                  // between workers
};

// `devices` are the names of the workers' devices, `network` their links (nullptr: everything goes
// straight from worker to worker). The graph is the one that the plan was made for (decomposed).
// Throws an Error when the plan does not fit the graph.
LoweredGraph lower(const Graph& graph, const Descriptions& descriptions, const Plan& plan,
                   const std::vector<std::string>& devices, Network* network = nullptr);

}  // namespace emplace
