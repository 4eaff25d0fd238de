// What else could be done than to place these ops on these devices: divide tensors, take another
// batch, buy other hardware.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "report/explanation.h"

namespace emplace {

// Sections of an explanation; nothing where nothing was looked at.
std::string describe_alternatives(const Explanation& explanation, const Assessment& assessment);
// Its fields `in_parts`, `batches` and `sensitivities`.
void add_alternatives(nlohmann::ordered_json& json, const Explanation& explanation,
                      const Assessment& assessment);

}  // namespace emplace
