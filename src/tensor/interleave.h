// Tensors of which several parts of one kind lie side by side in one dimension, as the four gates
// of an LSTM do in its weights [4 h, in]: that dimension becomes two, [4, h, in], all the way from
// the weights to where the parts are told apart, and back. A cut of `h` then gives every worker a
// slice of each gate, so that gates need not be exchanged: interleaved parts of the weights.
//
// Products over such tensors become Einstein sums, and parameters of the new graph have the new
// shapes, with the same elements in the same order. The graph computes the same.
#pragma once

#include "graph/graph.h"

namespace emplace {

// Of a graph that was taken apart (tensor/decompose.h), where Split is several slices.
Graph interleave(const Graph& graph);

}  // namespace emplace
