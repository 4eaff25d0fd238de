// Files of measured collectives (docs/partitioning.md): a line for each measurement.
#pragma once

#include <string>

#include "cluster/collective_times.h"

namespace emplace {

// Throws an Error that names the path and the line.
CollectiveTimes read_collectives(const std::string& text, const std::string& path);
CollectiveTimes read_collectives_file(const std::string& path);

}  // namespace emplace
