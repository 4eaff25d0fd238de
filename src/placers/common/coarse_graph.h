// The colocation groups as a weighted undirected graph, for the partitioners; and what they share
// before and after they call their library.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "placer/placer.h"

namespace emplace {

// Without loops; every edge in both directions with the same weight; neighbours ascending.
struct CoarseGraph {
  std::vector<std::int64_t> offsets;  // neighbours of v: [offsets[v], offsets[v + 1])
  std::vector<GroupId> neighbours;
  std::vector<Bytes> edge_bytes;       // beside `neighbours`: what the two groups exchange
  std::vector<Nanoseconds> durations;  // by group, the sum of its ops' mean durations
  std::vector<Bytes> resident;         // by group

  GroupId size() const { return static_cast<GroupId>(durations.size()); }
};

// A tensor counts once for each group other than its producer's that reads it.
CoarseGraph build_coarse_graph(const Problem& problem);

// The values scaled down by one factor, where need be, so that they add up to `limit` at most.
// Positive values stay at least 1, zeros zero. At most `limit` / 2 values may be positive.
std::vector<std::int32_t> scale_weights(const std::vector<std::int64_t>& values,
                                        std::int64_t limit);

// Of `candidates`, those that take part in a partition: the ones that groups of at least half of
// all the time may use. A few groups that are tied to one device thus neither exclude the others
// nor are excluded: `place_parts` moves them afterwards.
std::vector<DeviceId> partition_devices(const Problem& problem, const CoarseGraph& graph,
                                        const std::vector<DeviceId>& candidates);

// Shares of the work in proportion to the devices' speeds; they add up to 1.
std::vector<double> speed_shares(const Problem& problem, const std::vector<DeviceId>& devices);

// Gives part i to devices[i]. A group that may not be there goes to that of `allowed` with which it
// exchanges most, then the least loaded; notes say where the result does not fit in memory.
PlaceResult place_parts(const Problem& problem, Evaluator& evaluator, const CoarseGraph& graph,
                        const std::vector<std::int32_t>& part_of_group,
                        const std::vector<DeviceId>& devices, const std::vector<DeviceId>& allowed);

}  // namespace emplace
