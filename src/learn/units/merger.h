// Sets of colocation groups that grow together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "learn/units/acyclic_order.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// What a set may have.
struct SetLimits {
  Nanoseconds time;
  Bytes memory;  // for the whole step
};

// A set is named by one of its groups. Invariant: some device may run all of a set, since a merge
// that would leave none is refused; so every set can be placed. Where sets are to be acyclic
// (precedence_of), merges that would close a cycle are refused too.
class Merger {
 public:
  // One set a group.
  Merger(const Problem& problem, bool acyclic);

  const UnitGraph& groups() const { return groups_; }
  UnitId count() const { return count_; }
  UnitId set_of(UnitId group) const { return set_of_[group]; }
  bool exists(UnitId set) const { return !members_[set].empty(); }
  std::span<const UnitId> members(UnitId set) const { return members_[set]; }
  Nanoseconds time(UnitId set) const { return time_[set]; }
  Bytes memory(UnitId set) const { return memory_[set]; }
  Nanoseconds total_time() const { return total_time_; }
  bool acyclic() const { return order_.has_value(); }
  // All there are: by name, or in a topological order where they are acyclic.
  std::vector<UnitId> sets() const;
  bool exchange(UnitId a, UnitId b) const { return exchanged_[a].contains(b); }
  // By neighbour, bytes.
  const std::map<UnitId, Bytes>& exchanged(UnitId set) const { return exchanged_[set]; }

  // Two sets within the limits; one that has no time or memory adds none, and may always join.
  bool merge(UnitId a, UnitId b, const SetLimits& limits);
  // The neighbour that it exchanges most with and may be merged with; the shorter of equals.
  bool merge_with_nearest(UnitId set, const SetLimits& limits);
  // Sets are taken apart, the shortest first, until there are `most_units`: a group joins the set
  // that it exchanges most with of those that have room, or else the shortest. A set of which a
  // group finds no room keeps what is left. Not where sets are to be acyclic.
  void dissolve(std::int64_t most_units, const SetLimits& limits);

  // By group.
  std::vector<std::uint32_t> labels() const { return {set_of_.begin(), set_of_.end()}; }

 private:
  void absorb(UnitId kept, UnitId other);
  void connect();
  bool has_room(UnitId set, UnitId group, const SetLimits& limits) const;
  std::optional<UnitId> refuge(UnitId group, const SetLimits& limits) const;
  bool take_apart(UnitId set, const SetLimits& limits);
  void move(UnitId group, UnitId to);

  UnitGraph groups_;  // one a group, so units are groups here
  std::vector<UnitId> set_of_;
  std::vector<std::vector<UnitId>> members_;  // by set
  std::vector<Nanoseconds> time_;
  std::vector<Bytes> memory_;
  std::vector<std::map<UnitId, Bytes>> exchanged_;
  std::vector<std::vector<DeviceId>> allowed_;
  // The shortest first, while sets are taken apart.
  std::set<std::pair<Nanoseconds, UnitId>> by_time_;
  std::optional<AcyclicOrder> order_;
  UnitId count_;
  Nanoseconds total_time_ = 0;
};

}  // namespace emplace::learn
