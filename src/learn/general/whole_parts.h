// What people would leave whole when they cut a model.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/problem.h"

namespace emplace::learn {

// By group: which part it belongs to, from 0. A group is where its longest op is.
using PartOfGroup = std::vector<std::uint32_t>;

// Modules, and where a network is recurrent also layers.
std::vector<PartOfGroup> whole_modules(const Problem& problem);

// Groups that read the same parameters, and these: all steps of a recurrent cell. What reads none
// is by itself.
PartOfGroup parameter_sharers(const Problem& problem);

}  // namespace emplace::learn
