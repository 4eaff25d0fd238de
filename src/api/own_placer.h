// Functions of the caller's as placers.
#pragma once

#include <vector>

#include <emplace/place.h>

#include "placer/run.h"

namespace emplace {

// A run for each function and scheduler, and for each seed where it is randomised. Throws an Error
// when a name is missing, or is a placer's.
std::vector<PlacerRun> own_runs(const PlaceOptions& options, int seeds);

}  // namespace emplace
