// What to say of a placement that does not fit.
#pragma once

#include <string>

#include "cli/report.h"

namespace emplace::cli {

// What is short where, and by how much; empty when the outcome fits.
std::string describe_shortfall(const Outcome& outcome);

// What would make it fit.
std::string advise_on_shortfall(const Explanation& explanation, const Outcome& outcome);

}  // namespace emplace::cli
