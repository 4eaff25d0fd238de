// An order for the nodes of foreign formats, which list theirs in any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace emplace {

// The nodes 0..n-1 so that every edge (from, to) goes forward; of the nodes that could come next,
// always the lowest. Throws an Error that names the nodes of a cycle, as `name_of` calls them.
std::vector<std::uint32_t> topological_order(
    std::size_t nodes, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges,
    const std::function<std::string(std::uint32_t)>& name_of);

}  // namespace emplace
