// Steps of uneven work with dear transfers, made from seeds: small, and harder to place than their
// size suggests, as what an op sends may take ten times as long as the op.
#pragma once

#include <cstdint>
#include <memory>

#include "graph/graph.h"

namespace emplace::bench {

// "uneven-7" of seed 7: 100 to 300 ops whose times differ by up to a factor of 300, each with one
// to three inputs from the few dozen ops before it, now and then from further back; a tensor takes
// a tenth of a mean op's time to ten times as long over a link of cluster_for's. Times are for
// p100.
std::shared_ptr<const Graph> uneven_step(std::uint64_t seed);

}  // namespace emplace::bench
