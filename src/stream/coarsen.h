// Coarser and coarser levels of a stream's hypergraph: items that exchange much are merged in
// pairs, at random but the more likely the more they exchange (heavy-edge matching, Karypis and
// Kumar, SIAM J. Sci. Comput. 1998; nets as in hMETIS).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/rng.h"

#include "stream/anneal.h"
#include "stream/level.h"

namespace emplace {

class StreamHierarchy {
 public:
  // Stops near `coarsest` items, or earlier where pairing gets nowhere. Only items of equal
  // `part_of_item` are merged; empty: any. `stop` is asked between levels.
  StreamHierarchy(const StreamLevel& finest, std::uint32_t coarsest,
                  std::vector<std::uint32_t> part_of_item, Rng& rng, const StopCheck& stop);

  // 0 is the finest.
  std::size_t num_levels() const { return coarser_.size() + 1; }
  const StreamLevel& level(std::size_t depth) const {
    return depth == 0 ? finest_ : coarser_[depth - 1];
  }
  // The assignment of `depth` - 1 that gives every item its cluster's device.
  std::vector<DeviceId> refine(std::size_t depth, const std::vector<DeviceId>& device_of) const;
  // The assignment of the coarsest level; items of one cluster must share a device.
  std::vector<DeviceId> coarsen(std::vector<DeviceId> device_of) const;

 private:
  const StreamLevel& finest_;
  std::deque<StreamLevel> coarser_;
  std::vector<std::vector<std::uint32_t>> cluster_of_;  // by depth - 1, of the finer level's items
};

}  // namespace emplace
