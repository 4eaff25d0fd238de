// The links between workers, and how all of them exchange what each has: everybody with everybody
// at once, along a ring, or in stages, each of which follows some levels of the tree (within the
// machines, then between them).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/collective_times.h"

#include "tensor/movement.h"
#include "tensor/workers.h"

namespace emplace {

// Groups of workers that differ in these levels' digits alone exchange, each by itself.
struct Stage {
  LevelSet levels = 0;
  bool ring = false;  // from neighbour to neighbour; else from each to each
  // Where it was measured as one collective: how long that took, in ns, and how many times as long
  // as what its transfers, from each to each, take on the links.
  std::optional<double> measured = std::nullopt;
  double stretch = 1;
};

enum class Exchange : std::uint8_t { kGather, kReduce };

class Network {
 public:
  struct Link {
    ChannelId channel = 0;
    double ns_per_byte = 0;
    double ns_per_transfer = 0;
    bool unlimited = false;  // what is sent at once takes as long as the longest of it
  };

  // The links between the workers' devices. Throws an Error when two of them have no link. What was
  // `measured` as a collective takes that long, whatever the links say.
  Network(const Workers& workers, const Cluster& cluster, const std::vector<DeviceId>& devices,
          const CollectiveTimes* measured = nullptr);

  const Workers& workers() const { return workers_; }
  const Link& link(Worker from, Worker to) const {
    return links_[static_cast<std::size_t>(from) * workers_.count() + to];
  }
  // Links are equally fast by the byte, nobody shares one and nothing was measured: all at once is
  // then taken to be best.
  bool is_flat() const { return flat_; }

  // For everybody to have what all those that differ from it in these levels have, `bytes`
  // together, in the order of a gathering: between machines first. A reduction into parts is the
  // same the other way round. By the time on the busiest channel and the starting of kernels; what
  // was measured as one collective is one.
  const std::vector<Stage>& stages(LevelSet levels, Bytes bytes, Exchange exchange);

  // Among how many devices the stages exchange that were asked for and are not measured, although
  // others are.
  const std::set<int>& unmeasured() const { return unmeasured_; }

  // Levels on which partial results that were made so may be reduced in parts: all but those whose
  // groups have the same, where links between these are slower than those that the reduction takes.
  // Each group then reduces its own.
  LevelSet levels_to_reduce(const Spread& made) const;

  // How everybody gets the region that it needs of a value that is kept so (not partial): in
  // stages along these levels; 0: each straight from those who have it.
  LevelSet levels_to_gather(const std::vector<tdl::Region>& needed, const Spread& kept) const;

 private:
  using Plan = std::pair<double, std::vector<Stage>>;  // its time
  void find_tiers();
  // `each` is what a worker has before the stage.
  double time_on_links(const Stage& stage, double each);
  double time_of(const Stage& stage, double each);
  std::optional<Plan> measured_single(LevelSet levels, double each, Exchange exchange);
  Plan best_single(LevelSet levels, double each, Exchange exchange);
  std::vector<Stage> best_stages(LevelSet levels, Bytes bytes, Exchange exchange);

  const Workers& workers_;
  std::vector<Link> links_;  // by ordered pair
  // By level: those whose slowest links are equally fast are of one tier; the first is the slowest.
  std::vector<int> tiers_;
  std::vector<double> loads_;
  double launch_ = 0;  // of the slowest device, in ns
  bool flat_ = true;
  const CollectiveTimes* measured_;
  std::set<int> unmeasured_;
  std::map<std::tuple<LevelSet, Bytes, Exchange>, std::vector<Stage>> stages_;
};

}  // namespace emplace
