#include "placers/common/gap_timeline.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace emplace {
namespace {

constexpr Nanoseconds kForever = std::numeric_limits<Nanoseconds>::max();

// A treap needs weights that look random; a mixed counter gives the same ones in every run.
std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

}  // namespace

GapTimeline::GapTimeline() : nodes_(1) {
  root_ = make_node(0, kForever);
}

Nanoseconds GapTimeline::find(Nanoseconds ready, Nanoseconds length, bool insertion) const {
  EMPLACE_DCHECK(ready >= 0 && length > 0);
  if (!insertion || ready >= end_) return std::max(ready, end_);
  const NodeId id = find_fitting(root_, ready, length);
  EMPLACE_CHECK(id != kNone);
  return std::max(ready, nodes_[id].start);
}

void GapTimeline::reserve(Nanoseconds start, Nanoseconds length) {
  const Nanoseconds finish = start + length;
  end_ = std::max(end_, finish);
  NodeId before = kNone;
  NodeId after = kNone;
  NodeId gap = kNone;
  split(root_, start + 1, before, after);
  // The gap that holds `start` is the last one that starts no later.
  NodeId earlier = kNone;
  NodeId last = before;
  EMPLACE_CHECK(last != kNone);
  while (nodes_[last].right != kNone) last = nodes_[last].right;
  const Nanoseconds gap_start = nodes_[last].start;
  const Nanoseconds gap_end = nodes_[last].end;
  EMPLACE_CHECK(gap_start <= start && finish <= gap_end);
  split(before, gap_start, earlier, gap);
  unused_.push_back(gap);
  NodeId whole = earlier;
  if (gap_start < start) whole = merge(whole, make_node(gap_start, start));
  if (finish < gap_end) whole = merge(whole, make_node(finish, gap_end));
  root_ = merge(whole, after);
}

GapTimeline::NodeId GapTimeline::make_node(Nanoseconds start, Nanoseconds end) {
  NodeId id = 0;
  if (unused_.empty()) {
    id = static_cast<NodeId>(nodes_.size());
    nodes_.emplace_back();
    nodes_[id].weight = mixed(id);
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  Node& node = nodes_[id];
  node.start = start;
  node.end = end;
  node.longest = end - start;
  node.left = kNone;
  node.right = kNone;
  return id;
}

void GapTimeline::update(NodeId id) {
  Node& node = nodes_[id];
  node.longest =
      std::max({node.end - node.start, nodes_[node.left].longest, nodes_[node.right].longest});
}

GapTimeline::NodeId GapTimeline::merge(NodeId left, NodeId right) {
  if (left == kNone) return right;
  if (right == kNone) return left;
  NodeId top = kNone;
  if (nodes_[left].weight > nodes_[right].weight) {
    top = left;
    nodes_[top].right = merge(nodes_[left].right, right);
  } else {
    top = right;
    nodes_[top].left = merge(left, nodes_[right].left);
  }
  update(top);
  return top;
}

void GapTimeline::split(NodeId id, Nanoseconds time, NodeId& before, NodeId& from) {
  if (id == kNone) {
    before = from = kNone;
    return;
  }
  if (nodes_[id].start < time) {
    before = id;
    NodeId rest = kNone;
    split(nodes_[id].right, time, rest, from);
    nodes_[id].right = rest;
  } else {
    from = id;
    NodeId rest = kNone;
    split(nodes_[id].left, time, before, rest);
    nodes_[id].left = rest;
  }
  update(id);
}

GapTimeline::NodeId GapTimeline::first_long_enough(NodeId id, Nanoseconds length) const {
  while (id != kNone) {
    const Node& node = nodes_[id];
    if (nodes_[node.left].longest >= length) {
      id = node.left;
    } else if (node.end - node.start >= length) {
      return id;
    } else {
      id = node.right;
    }
  }
  return kNone;
}

// The first gap with `length` left after `ready`. Only the one gap that holds `ready` can be long
// enough as a whole and yet too short, so that the search leaves its path once at most.
GapTimeline::NodeId GapTimeline::find_fitting(NodeId id, Nanoseconds ready,
                                              Nanoseconds length) const {
  if (id == kNone || nodes_[id].longest < length) return kNone;
  const Node& node = nodes_[id];
  if (node.end <= ready) return find_fitting(node.right, ready, length);
  if (node.start >= ready) {
    const NodeId earlier = find_fitting(node.left, ready, length);
    if (earlier != kNone) return earlier;
    if (node.end - node.start >= length) return id;
    return first_long_enough(node.right, length);
  }
  if (node.end - ready >= length) return id;  // holds `ready`; what lies left of it has ended
  return first_long_enough(node.right, length);
}

}  // namespace emplace
