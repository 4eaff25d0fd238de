// An order of a device's possible contents in which few nets are open at once.
#pragma once

#include <cstdint>
#include <vector>

#include "stream/bound_contents.h"

namespace emplace {

// Every unit once.
std::vector<std::uint32_t> order_units(const ContentGraph& graph);

}  // namespace emplace
