// The moves of local searches: what to change next, given where the step loses time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

#include "sim/incremental.h"
#include "sim/simulator.h"

#include "placer/evaluator.h"

#include "placers/common/coarse_graph.h"
#include "placers/local/clusters.h"

namespace emplace {

class Neighbourhood {
 public:
  enum class Kind {
    kRandom,     // a cluster to any device
    kNeighbour,  // a cluster to the device of one that it exchanges tensors with
    kBoundary,   // the same, with a run of neighbours behind it: the border moves
    kSwap,       // two clusters of two devices change places
    kTransfer,   // ends a transfer on the critical chain, by moving its maker or its taker
    kBusy,       // takes an op on the critical chain, or what it waits for, off a busy device
    kSegment,    // a piece of the critical chain moves as a whole
    kMemory,     // takes something large off the device that is short of memory, or nearest to it
  };
  static constexpr int kNumKinds = 8;

  // All must outlive it. Moves only to devices that the ops may use and, where links are missing,
  // only so that every tensor still has a way.
  Neighbourhood(const Problem& problem, const CoarseGraph& graph);

  const Clusters& clusters() const { return clusters_; }
  void set_clusters(Clusters clusters) { clusters_ = std::move(clusters); }

  // What moves of the critical kinds are about; none are proposed without. `peaks` by device.
  void set_focus(std::vector<HotSpot> spots, std::vector<Bytes> peaks);

  // Moves from the placement, in `moves`, each to a device other than its present one. False where
  // this try led to nothing.
  bool propose(const Placement& placement, Rng& rng, std::vector<Move>& moves);
  bool propose(Kind kind, const Placement& placement, Rng& rng, std::vector<Move>& moves);
  // Whether every tensor has a way after these moves.
  bool links_exist(const Placement& placement, std::span<const Move> moves);
  // Of what was proposed last.
  Kind last_kind() const { return last_kind_; }

 private:
  DeviceId device_of(const Placement& placement, GroupId group) const {
    return placement[problem_.group_ops(group)[0]];
  }
  GroupId random_group(Rng& rng) const { return static_cast<GroupId>(rng.below(graph_.size())); }
  DeviceId random_device(DeviceId other_than, Rng& rng) const;
  void add_cluster(std::uint32_t cluster, DeviceId device, const Placement& placement,
                   std::vector<Move>& moves) const;
  void add_group_cluster(GroupId group, DeviceId device, const Placement& placement,
                         std::vector<Move>& moves) const {
    add_cluster(clusters_.of_group[group], device, placement, moves);
  }
  const HotSpot* random_spot(HotSpot::Kind kind, Rng& rng) const;
  void move_across_border(const Placement& placement, Rng& rng, bool run,
                          std::vector<Move>& moves) const;
  void end_transfer(const Placement& placement, Rng& rng, std::vector<Move>& moves) const;
  void relieve_device(const Placement& placement, Rng& rng, std::vector<Move>& moves) const;
  void move_segment(const Placement& placement, Rng& rng, std::vector<Move>& moves) const;
  void relieve_memory(const Placement& placement, Rng& rng, std::vector<Move>& moves) const;
  void swap_clusters(const Placement& placement, Rng& rng, std::vector<Move>& moves) const;
  DeviceId device_for(GroupId group, const Placement& placement, Rng& rng) const;

  const Problem& problem_;
  const CoarseGraph& graph_;
  bool all_linked_;
  Clusters clusters_;
  std::vector<HotSpot> spots_;
  std::vector<std::uint32_t> by_kind_[3];       // places in spots_
  std::vector<Nanoseconds> running_length_[3];  // sums, to draw by length
  std::vector<Bytes> peaks_;
  std::vector<GroupId> heavy_;  // groups that hold much memory
  Kind last_kind_ = Kind::kRandom;
  std::vector<DeviceId> device_after_;  // scratch of links_exist
};

}  // namespace emplace
