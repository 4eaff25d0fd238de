// What to say of a placement that does not fit.
#pragma once

#include <string>

#include "run/assessment.h"

namespace emplace {

struct Explanation;

// What is short where, and by how much; empty when the assessment fits.
std::string describe_shortfall(const Assessment& assessment);

// What would make it fit.
std::string advise_on_shortfall(const Explanation& explanation, const Assessment& assessment);

}  // namespace emplace
