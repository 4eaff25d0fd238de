// Part of the library that does not see MPI.
#include "base/loaded_library.h"

#include "dist/mpi.h"

namespace emplace::dist {

std::unique_ptr<Transport> join_mpi(const std::string& needed_by) {
  void* entry = find_in_mpi_library("emplace_join_mpi", needed_by);
  return std::unique_ptr<Transport>(reinterpret_cast<Transport* (*)()>(entry)());
}

}  // namespace emplace::dist
