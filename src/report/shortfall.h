// What to say of a placement that does not fit.
#pragma once

#include <string>

#include "run/assessment.h"
#include "run/subset_problems.h"

namespace emplace {

struct Explanation;

// What is short where, and by how much; empty when the assessment fits.
std::string describe_shortfall(const Assessment& assessment);

// What would make it fit.
std::string advise_on_shortfall(const Explanation& explanation, const Assessment& assessment);

// Where it is proven that nothing fits: both for the nearest of a few quick placements. Empty where
// there is none.
std::string describe_hopeless(const SubsetProblems& problems, bool could_recompute);

}  // namespace emplace
