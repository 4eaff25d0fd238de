// The free time of one device while a schedule is built: disjoint gaps, the last without
// end. Finding the first gap that is long enough and taking time out of it cost O(log gaps).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace emplace {

class GapTimeline {
 public:
  GapTimeline();

  // The earliest time, not before `ready`, from which `length` is free; without `insertion` only
  // what follows the last reservation counts. `length` must be positive.
  Nanoseconds find(Nanoseconds ready, Nanoseconds length, bool insertion = true) const;

  // Takes [start, start + length), which must be free (as `find` returns it).
  void reserve(Nanoseconds start, Nanoseconds length);

  // The end of the last reservation.
  Nanoseconds end() const { return end_; }

 private:
  using NodeId = std::uint32_t;
  static constexpr NodeId kNone = 0;  // a sentinel whose longest gap is empty

  // A treap: ordered by time, heap-ordered by weight. Gaps are disjoint, so that order by start is
  // order by end too, and a gap may shrink in its place.
  struct Node {
    Nanoseconds start = 0;
    Nanoseconds end = 0;
    Nanoseconds longest = 0;  // of the gaps in this subtree
    std::uint32_t weight = 0;
    NodeId left = kNone;
    NodeId right = kNone;
  };

  NodeId make_node(Nanoseconds start, Nanoseconds end);
  void update(NodeId id);
  NodeId merge(NodeId left, NodeId right);
  // Gaps that start before `time`, and the others.
  void split(NodeId id, Nanoseconds time, NodeId& before, NodeId& from);
  NodeId first_long_enough(NodeId id, Nanoseconds length) const;
  NodeId find_fitting(NodeId id, Nanoseconds ready, Nanoseconds length) const;

  std::vector<Node> nodes_;
  std::vector<NodeId> unused_;
  NodeId root_ = kNone;
  Nanoseconds end_ = 0;
};

}  // namespace emplace
