// Every placer of src/placers. The list is generated at configure time.
#pragma once

#include "placer/placer.h"

namespace emplace {

const PlacerRegistry& all_placers();

}  // namespace emplace
