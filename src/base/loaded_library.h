// What needs libtorch or MPI is in libraries of their own, which are loaded when they are first
// needed.
#pragma once

#include <string>

namespace emplace {

// The address of the entry in libemplace_torch. Throws an Error that says who needs it, "gdp", when
// the library cannot be loaded; a later call tries again.
void* find_in_torch_library(const char* entry, const std::string& needed_by);

// The same in libemplace_mpi.
void* find_in_mpi_library(const char* entry, const std::string& needed_by);

}  // namespace emplace
