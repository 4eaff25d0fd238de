// Which ops write their result over one of their inputs: docs/simulator.md, In place.
#pragma once

#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <emplace/problem.h>

#include "base/ids.h"

#include "graph/graph.h"

namespace emplace {

// "none", "sums", "all".
std::string_view in_place_name(InPlace mode);
std::optional<InPlace> parse_in_place(std::string_view name);

inline constexpr TensorId kNotOverwritten = std::numeric_limits<std::uint32_t>::max();

// By op: the input that its result takes the place of, or kNotOverwritten. Whatever the placement,
// the op is the last to use that input on its own device. O(edges).
std::vector<TensorId> find_overwritten(const Graph& graph, InPlace mode);

}  // namespace emplace
