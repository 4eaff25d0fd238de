// A problem as the lower bounds see it: the ops that take time, in topological order, who waits for
// whom, and devices sorted into classes of equals. Everything in it is at most what it is in the
// problem, so that what is proven of it holds for every placement. Turned round (`reversed`), a
// statement about starts is one about what comes after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

namespace emplace {

// A time that no step has: an op that may not run there, a link that does not exist.
inline constexpr Nanoseconds kInfinite = std::numeric_limits<Nanoseconds>::max();

// Stays kInfinite. Two sums of real times do not overflow (Problem::horizon).
inline Nanoseconds later(Nanoseconds time, Nanoseconds length) {
  Nanoseconds sum = 0;
  return __builtin_add_overflow(time, length, &sum) ? kInfinite : sum;
}

// Devices sorted into classes whose members run everything equally fast and have as much memory;
// nothing where there are more than `most` classes. A `device_class` in this room is an index into
// them.
std::vector<std::vector<DeviceId>> classes_of_devices(const Problem& problem, std::size_t most);

// The best latency and the best bandwidth among the links between members of two classes, which
// no real link need have at once.
struct Connection {
  Nanoseconds latency = 0;
  std::int64_t bandwidth = 0;
  friend bool operator==(const Connection&, const Connection&) = default;
};
std::optional<Connection> best_connection(const Cluster& cluster, std::span<const DeviceId> from,
                                          std::span<const DeviceId> to);

struct BoundArc {
  std::uint32_t from = 0;
  std::uint32_t transfer = 0;  // an index into the transfers
};

class BoundDag {
 public:
  using Possible = std::function<bool(GroupId, DeviceId)>;

  // `possible` says where a group may run, beside what the problem says.
  BoundDag(const Problem& problem, const Possible& possible);

  // The same with every arc turned round; node i is node size() - 1 - i of it.
  BoundDag reversed() const;
  std::uint32_t mirrored(std::uint32_t node) const { return size() - 1 - node; }

  std::uint32_t size() const { return static_cast<std::uint32_t>(op_.size()); }
  OpId op(std::uint32_t node) const { return op_[node]; }
  // What must share a device; and the group that one of the problem's has become a part of.
  GroupId group(std::uint32_t node) const { return group_[node]; }
  GroupId num_groups() const { return static_cast<GroupId>(label_.size()); }
  GroupId label(GroupId group) const { return label_[group]; }
  // Without repeats.
  std::span<const BoundArc> before(std::uint32_t node) const { return before_[node]; }
  std::size_t num_arcs() const { return before_.total(); }

  std::size_t num_classes() const { return class_size_.size(); }
  // All devices are one class, each op as fast as it is anywhere, as there are too many classes.
  bool lumped() const { return lumped_; }
  std::size_t class_size(std::size_t device_class) const { return class_size_[device_class]; }
  Nanoseconds gap(std::size_t device_class) const { return gap_[device_class]; }
  Bytes memory(std::size_t device_class) const { return memory_[device_class]; }
  Nanoseconds duration(std::uint32_t node, std::size_t device_class) const {
    return duration_[node * num_classes() + device_class];
  }
  Nanoseconds fastest(std::uint32_t node) const;
  // A device of one class and another device of the other exist.
  bool apart(std::size_t from, std::size_t to) const { return from != to || class_size_[from] > 1; }
  // From the end of one op on a device of class `from` to the start of the next on another device.
  Nanoseconds crossing(const BoundArc& arc, std::size_t from, std::size_t to) const {
    if (arc.transfer == kControl) return 0;
    const std::uint32_t link = link_[from * num_classes() + to];
    return link == kNoLinkKind ? kInfinite : transfer_[arc.transfer * num_links_ + link];
  }
  // Between ops that follow each other on one device.
  Nanoseconds pause(std::uint32_t first, std::uint32_t second, std::size_t device_class) const {
    return duration(first, device_class) > 0 && duration(second, device_class) > 0
               ? gap_[device_class]
               : 0;
  }

  // Conclusions: groups that share a device, and a class that is out of question for a group.
  // `label` gives each group's representative.
  void merge(const std::function<GroupId(GroupId)>& label);
  void forbid(std::uint32_t node, std::size_t device_class);

 private:
  friend class BoundDagMaker;
  BoundDag() = default;

  static constexpr std::uint32_t kControl = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kNoLinkKind = kControl;

  std::vector<OpId> op_;
  std::vector<GroupId> group_;
  std::vector<GroupId> label_;
  Csr<BoundArc> before_;
  bool lumped_ = false;
  std::vector<std::size_t> class_size_;
  std::vector<Nanoseconds> gap_;
  std::vector<Bytes> memory_;
  std::vector<Nanoseconds> duration_;  // [node][class]
  std::vector<std::uint32_t> link_;    // [class][class], an index into a transfer's times
  std::size_t num_links_ = 0;
  std::vector<Nanoseconds> transfer_;  // [transfer][link]
};

}  // namespace emplace
