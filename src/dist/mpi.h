// MPI, which is in a library of its own (libemplace_mpi.so) and is loaded when a process joins
// others.
#pragma once

#include <memory>
#include <string>

#include "dist/transport.h"

namespace emplace::dist {

// Joins the ranks that were started together with this process, once in its life. Throws an Error
// that says who needs it, "--ranks", where the library cannot be loaded.
std::unique_ptr<Transport> join_mpi(const std::string& needed_by);

}  // namespace emplace::dist
