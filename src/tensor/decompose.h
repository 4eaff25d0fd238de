// Operators that do several things which want to be divided differently, as several operators:
// - Normalisation by a batch's own statistics becomes BatchNormStatistics (sums over the batch,
//   whose partial results add up) and BatchNormApply (elementwise); its gradient likewise. A
//   BatchNormalization is of that kind if it says training_mode=1, has more than one output, or the
//   graph has a backward pass. Its running statistics are a BatchNormRunning.
// - A mean of losses with weights, or without labels that are ignored, becomes the sum of the
//   losses, the sum of the weights (LossWeight) and a quotient; its gradient likewise.
// - Split becomes a Slice for each output, so that every output can be divided along the axis.
// The graph computes the same as before.
#pragma once

#include "graph/graph.h"

namespace emplace {

Graph decompose(const Graph& graph);

}  // namespace emplace
