// What moving tensors between workers costs: bytes, or the time that they take on the cluster's
// links when all workers exchange at once.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cluster/cluster.h"

#include "tensor/movement.h"

namespace emplace {

class Traffic {
 public:
  // Counts bytes.
  explicit Traffic(const Workers& workers);
  // Counts nanoseconds on the links between the workers' devices. Throws an Error when two of them
  // have no link.
  Traffic(const Workers& workers, const Cluster& cluster, const std::vector<DeviceId>& devices);

  const Workers& workers() const { return workers_; }

  // For every worker to get the region that it needs of a value that is kept so.
  std::int64_t to_read(const std::vector<tdl::Region>& needed, const Spread& kept,
                       Bytes element_bytes);
  // For a value that was made so to be kept so. Where it is partial, it is reduced as
  // `reduced` says first (cuts_for_reduction).
  std::int64_t to_keep(const Spread& made, const Spread& reduced, const Spread& kept,
                       Bytes element_bytes);

 private:
  struct Link {
    std::uint32_t channel = 0;
    double ns_per_byte = 0;
    double ns_per_transfer = 0;
    bool unlimited = false;  // what is sent at once takes as long as the longest of it
  };

  // By partial result and worker: sources_for.
  using Sources = std::vector<std::vector<std::vector<Worker>>>;
  const Sources& sources_of(const Spread& spread);
  // What is asked for of one partial result.
  void send_all(const std::vector<tdl::Region>& needed, const Spread& kept, int partial,
                Bytes element_bytes);
  void send(Worker from, Worker to, Bytes bytes);
  // Sends what is asked for and returns what all of it costs.
  std::int64_t settle();

  const Workers& workers_;
  bool counts_time_ = false;
  std::vector<Link> links_;    // by ordered pair
  std::vector<double> loads_;  // by channel, of what has been sent
  std::int64_t bytes_ = 0;     // likewise
  std::map<std::vector<LevelRole>, Sources> sources_;
};

}  // namespace emplace
