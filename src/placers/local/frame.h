// How every search of this library begins and ends.
#pragma once

#include "placer/placer.h"

namespace emplace {

// Tells the incumbent what is quickly known: a lower bound.
void begin_search(PlaceContext& context);

// Whether there is anything left to search for: the budget is not spent, the incumbent not proven
// optimal, and some group may choose between devices.
bool worth_searching(const PlaceContext& context, const Budget& budget);

// The incumbent's best, with a note that says where it does not fit. There must be one.
PlaceResult end_search(PlaceContext& context);

}  // namespace emplace
