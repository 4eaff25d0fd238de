// What needs libtorch is in a library of its own, which is loaded when it is first needed.
#pragma once

#include <string>

namespace emplace {

// The address of the entry in libemplace_torch. Throws an Error that says who needs it, "gdp", when
// the library cannot be loaded; a later call tries again.
void* find_in_torch_library(const char* entry, const std::string& needed_by);

}  // namespace emplace
