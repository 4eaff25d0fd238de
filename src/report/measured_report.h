// Placements that were executed to choose one of them, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "run/measured_choice.h"

namespace emplace {

std::string to_text(const std::vector<MeasuredCandidate>& candidates);
// The object with them as the field `measured`, where there are any.
std::string with_measured(const std::string& object,
                          const std::vector<MeasuredCandidate>& candidates);

}  // namespace emplace
