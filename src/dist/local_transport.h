// Ranks that are threads of one process, so that what is said between them can be tested without
// MPI, and go wrong on purpose.
#pragma once

#include <memory>
#include <vector>

#include "dist/transport.h"

namespace emplace::dist {

// Their mailboxes.
class LocalWorld;

class LocalRanks {
 public:
  explicit LocalRanks(int size);
  ~LocalRanks();

  // To be taken once for each rank.
  std::unique_ptr<Transport> take(int rank);
  // From now on nothing comes from this rank or reaches it, as if it had been killed; or again.
  void silence(int rank, bool silent = true);

 private:
  std::shared_ptr<LocalWorld> world_;
};

// Rank 0 of so many, of which nobody else is there: it has its machine to itself.
std::unique_ptr<Transport> silent_transport(int size);

}  // namespace emplace::dist
