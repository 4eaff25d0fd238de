// Where units are in the graph, as numbers that a dense layer can use: units that exchange much
// have coordinates that differ little. These are the smoothest functions on the graph: the leading
// eigenvectors of the random walk over its edges, each as likely as the edge's transfer would take,
// by orthogonal iteration. Linear in the number of edges.
#pragma once

#include <cstdint>

#include "base/rng.h"

#include "learn/nn/torch.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// [units, count] on the CPU: columns with a mean square of 1, no entry beyond 3; those that a graph
// of fewer units has no use for are 0. The random numbers are where the iteration begins.
torch::Tensor graph_coordinates(const UnitGraph& units, std::int64_t count, Rng& rng);

}  // namespace emplace::learn
