// Placements that were executed to choose one of them, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "run/measured_choice.h"

namespace emplace {

std::string to_text(const std::vector<MeasuredCandidate>& candidates);
// A list.
std::string to_json(const std::vector<MeasuredCandidate>& candidates);

}  // namespace emplace
