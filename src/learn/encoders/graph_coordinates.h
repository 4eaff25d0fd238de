// Where units are in the graph, as numbers that a dense layer can use: units that exchange much
// have coordinates that differ little. These are the smoothest functions on the graph: the leading
// eigenvectors of the random walk over its edges, each as likely as the edge's transfer would take,
// by orthogonal iteration. Linear in the number of edges.
#pragma once

#include <cstdint>

#include "base/rng.h"

#include "learn/features/features.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// `count` columns with a mean square of 1, none beyond 3; those that a small graph has no use for
// are 0. The random numbers are where the iteration begins.
Matrix graph_coordinates(const UnitGraph& units, std::int64_t count, Rng& rng);

}  // namespace emplace::learn
