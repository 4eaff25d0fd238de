// What moving tensors between workers costs: bytes, or the time that they take on the cluster's
// links when all workers exchange at once, in the stages of the lowered graph (tensor/network.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cluster/cluster.h"

#include "tensor/movement.h"
#include "tensor/network.h"

namespace emplace {

class Traffic {
 public:
  // Counts bytes.
  explicit Traffic(const Workers& workers);
  // Counts nanoseconds on the links between the workers' devices. Throws an Error when two of them
  // have no link.
  Traffic(const Workers& workers, const Cluster& cluster, const std::vector<DeviceId>& devices,
          const CollectiveTimes* measured = nullptr);

  const Workers& workers() const { return workers_; }

  // For every worker to get the region that it needs of a value that is kept so.
  std::int64_t to_read(const std::vector<tdl::Region>& needed, const Spread& kept,
                       Bytes element_bytes);
  // For partial results that were made so to be reduced to these parts (cuts_for_reduction), from
  // which whoever keeps the value reads it.
  std::int64_t to_reduce(const Spread& made, const Spread& reduced, Bytes element_bytes);
  // On which levels they may be (Network::levels_to_reduce); all where bytes are counted.
  LevelSet levels_to_reduce(const Spread& made) const {
    return network_ ? network_->levels_to_reduce(made) : ~LevelSet{0};
  }
  // For a value that was made so to be kept so, reduced first where it is partial.
  std::int64_t to_keep(const Spread& made, const Spread& reduced, const Spread& kept,
                       Bytes element_bytes);

 private:
  // By partial result and worker: sources_for.
  using Sources = std::vector<std::vector<std::vector<Worker>>>;
  const Sources& sources_of(const Spread& spread);
  const std::vector<std::vector<Worker>>& groups_of(LevelSet levels);  // by worker
  // The region of one partial result, which the worker asks for; `sources` have it.
  void fetch(const tdl::Region& needed, const Spread& kept, const std::vector<Worker>& sources,
             Worker to, Bytes element_bytes);
  // `in_turn`: not at once with what else is sent, also where any number could be.
  void send(Worker from, Worker to, double bytes, double transfers = 1, bool in_turn = false);
  // What all that was sent costs, or that took in the stage if it was measured.
  std::int64_t settle();
  std::int64_t settle(const Stage& stage);

  std::int64_t to_gather(const std::vector<tdl::Region>& needed, const Spread& kept,
                         LevelSet levels, const std::vector<Stage>& stages, Bytes element_bytes);
  std::int64_t to_reduce(const Spread& made, const Spread& reduced,
                         const std::vector<Stage>& stages, Bytes element_bytes);

  const Workers& workers_;
  std::optional<Network> network_;  // where time is counted
  std::vector<double> loads_;       // by channel, of what has been sent
  double bytes_ = 0;                // likewise
  std::map<std::vector<LevelRole>, Sources> sources_;
  std::map<LevelSet, std::vector<std::vector<Worker>>> groups_;
};

}  // namespace emplace
