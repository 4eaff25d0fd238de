// Which parts of a model are computed again in the backward pass (Chen et al. 2016, "Training Deep
// Nets with Sublinear Memory Cost").
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace emplace {

inline constexpr std::uint32_t kNoSegment = std::numeric_limits<std::uint32_t>::max();

// The segment of each op. A segment is a module, with all modules in it ("m" and "m.x"), that one
// of the patterns matches and that lies in no other such module; "*" stands for any text. Throws an
// Error when a pattern matches no module. Empty when there are no patterns.
std::vector<std::uint32_t> find_segments(const Graph& graph,
                                         const std::vector<std::string>& patterns);

// Whether the op draws random numbers: what it made must be kept, not made again.
bool is_random(std::string_view type);

}  // namespace emplace
