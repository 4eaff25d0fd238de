// Work that must be done between two moments, shared by all devices or by one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "base/wide.h"

#include "bound/dag.h"

namespace emplace {

// An op that starts no earlier than `head`, ends no later than `tail` before the end, and costs
// `work` of what passes at a rate of `scale` per nanosecond.
struct WorkItem {
  Nanoseconds head = 0;
  Nanoseconds tail = 0;
  Wide work = 0;
};

// The end of all items: the most over h and t of h + t + work / scale of those with head >= h and
// tail >= t, less `spare` work (Carlier 1982; the tree is that of Vilim 2004). Sorts the items.
Nanoseconds end_of_work(std::vector<WorkItem>& items, Wide scale, Wide spare);

// How much of the whole cluster's work an op is at least: any weights of the classes will do, and
// those in inverse proportion to the time that each needs for everything are good.
class SharedWork {
 public:
  explicit SharedWork(const BoundDag& dag);

  Wide of(const BoundDag& dag, std::uint32_t node) const;
  Wide scale() const { return scale_; }
  // The gap after each device's last op may lie beyond the end.
  Wide spare() const { return spare_; }

 private:
  std::vector<Wide> weight_;  // by class, of one device
  Wide scale_ = 0;
  Wide spare_ = 0;
};

}  // namespace emplace
