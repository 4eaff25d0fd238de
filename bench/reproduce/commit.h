// The commit that the program was built of, which CMake writes down at every build.
#pragma once

#include <string>

namespace emplace::bench {

// "0a1b2c3", "0a1b2c3-dirty" where files had changed since, "unknown" outside of a clone.
std::string commit();

}  // namespace emplace::bench
