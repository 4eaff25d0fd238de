// Greedy merging of groups into sets of about equal time.
//
// 1. Strangers: parts of the graph that nothing connects and that take less than a mean share
//    become one set each, and neighbours among these are packed together, so that a model's many
//    crumbs (counters of normalisation layers, say) do not take the place of useful sets.
// 2. The shortest set joins the neighbour that it exchanges most with, within the limits.
// 3. If there are still too many: sets are taken apart, and their groups go where there is room.
//    With at least `most_units` other sets, the shortest of them takes no more than the mean share,
//    so a group of half of that always finds room within 1.5 shares; and of more than `most_units`
//    sets one has no longer group, if there are no more of those. Hence the bound of merge_to_size.
//    Where sets are to be acyclic, 3. is: neighbours in the topological order are merged, which
//    closes no cycle. If that does not suffice, 2. is tried again up to one share and up to half a
//    share; sets of half a share, filled up in order to 1.5 shares, have more than one share each.
// 4. Where the bound cannot be kept, limits are raised by a quarter, again and again.
//
// O(E log^2 V) for 2., where the smaller map moves into the larger; 3. looks for room from the
// shortest set on, and over all sets only where memory or devices refuse. Nothing about it is
// exact; ties go by time, then by index.
#include "learn/units/merge_to_size.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

// In parts of the mean share.
constexpr double kLargestShare = 1.5;
constexpr std::array kAcyclicShares{1.5, 1.0, 0.5};
constexpr double kRaise = 1.25;
constexpr Bytes kAnyMemory = std::numeric_limits<Bytes>::max() / 4;
// Passes over sets that were refused.
constexpr int kMostPasses = 8;

bool few_enough(const Merger& merger, std::int64_t most_units) {
  return static_cast<std::int64_t>(merger.count()) <= most_units;
}

Nanoseconds shares(const Merger& merger, std::int64_t most_units, double count) {
  return static_cast<Nanoseconds>(count * static_cast<double>(merger.total_time()) /
                                  static_cast<double>(most_units));
}

// Of the smallest device.
Bytes whole_memory(const Merger& merger) {
  const Problem& problem = merger.groups().problem();
  Bytes result = kAnyMemory;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    result = std::min(result, problem.cluster().device(device).memory);
  }
  return result;
}

class Limits {
 public:
  Limits(const Merger& merger, std::int64_t most_units)
      : total_(merger.total_time()),
        whole_(whole_memory(merger)),
        // Sets of half a device still go together on devices.
        now_{.time = shares(merger, most_units, kLargestShare), .memory = whole_ / 2} {}

  const SetLimits& now() const { return now_; }
  SetLimits with_time(Nanoseconds time) const { return {.time = time, .memory = now_.memory}; }
  bool everything() const { return now_.time >= total_ && now_.memory >= kAnyMemory; }
  // Memory first, up to the whole of a device.
  void raise() {
    if (now_.memory < whole_) {
      now_.memory = whole_;
      return;
    }
    now_.time =
        std::min(total_, static_cast<Nanoseconds>(kRaise * static_cast<double>(now_.time)) + 1);
    now_.memory =
        now_.time >= total_ ? kAnyMemory : std::min(kAnyMemory, now_.memory + now_.memory / 4 + 1);
  }

 private:
  Nanoseconds total_;
  Bytes whole_;
  SetLimits now_;
};

// Sets that a path of exchanges connects, each part in the order of sets(), and so are the parts.
std::vector<std::vector<UnitId>> connected_parts(const Merger& merger) {
  const std::vector<UnitId> sets = merger.sets();
  std::map<UnitId, std::size_t> part_of;
  std::vector<std::vector<UnitId>> parts;
  for (const UnitId first : sets) {
    check_time_at(first);
    if (part_of.contains(first)) continue;
    std::vector<UnitId> open{first};
    part_of[first] = parts.size();
    while (!open.empty()) {
      const UnitId set = open.back();
      open.pop_back();
      for (const auto& [next, bytes] : merger.exchanged(set)) {
        if (part_of.emplace(next, parts.size()).second) open.push_back(next);
      }
    }
    parts.emplace_back();
  }
  for (const UnitId set : sets) parts[part_of[set]].push_back(set);
  return parts;
}

// Parts that take no more than a share, or half of one where sets are to be acyclic, become one
// set, then neighbours among those; of a part in its order, which closes no cycle.
void join_strangers(Merger& merger, std::int64_t most_units, const Limits& limits) {
  const SetLimits within_share =
      limits.with_time(shares(merger, most_units, merger.acyclic() ? kAcyclicShares.back() : 1));
  std::vector<UnitId> strangers;
  for (const std::vector<UnitId>& part : connected_parts(merger)) {
    Nanoseconds time = 0;
    for (const UnitId set : part) time += merger.time(set);
    if (time > within_share.time) continue;
    UnitId last = part.front();
    for (const UnitId set : part) {
      if (few_enough(merger, most_units)) return;
      if (set == last) continue;
      const UnitId group = merger.members(set).front();
      if (!merger.merge(last, set, within_share)) strangers.push_back(last);
      last = merger.set_of(group);
    }
    strangers.push_back(last);
  }
  for (std::size_t i = 1; i < strangers.size(); ++i) {
    if (few_enough(merger, most_units)) return;
    const UnitId group = merger.members(strangers[i]).front();
    merger.merge(strangers[i - 1], strangers[i], within_share);
    strangers[i] = merger.set_of(group);
  }
}

// The shortest, and of equals those of the fewest groups, first.
void merge_shortest(Merger& merger, std::int64_t most_units, const SetLimits& limits) {
  using Entry = std::pair<Nanoseconds, UnitId>;
  const auto weight = [&](UnitId set) {
    return merger.time(set) + static_cast<Nanoseconds>(merger.members(set).size());
  };
  std::set<Entry> queue;
  std::vector<UnitId> refused;  // where sets are acyclic, what others do may allow it later
  for (const UnitId set : merger.sets()) queue.emplace(weight(set), set);
  bool merged = false;
  int passes = 1;
  while (!few_enough(merger, most_units)) {
    check_time();
    if (queue.empty()) {
      if (!merged || !merger.acyclic() || passes++ == kMostPasses) return;
      for (const UnitId set : refused) {
        if (merger.exists(set)) queue.emplace(weight(set), set);
      }
      refused.clear();
      merged = false;
      continue;
    }
    const auto [then, set] = *queue.begin();
    queue.erase(queue.begin());
    // It has grown, or is part of another, since it was put here.
    if (!merger.exists(set) || weight(set) != then) continue;
    const UnitId group = merger.members(set).front();
    if (merger.merge_with_nearest(set, limits)) {
      merged = true;
      const UnitId root = merger.set_of(group);
      queue.emplace(weight(root), root);
    } else {
      refused.push_back(set);
    }
  }
}

// Of neighbours in the order, those that take least together first.
void merge_neighbours(Merger& merger, std::int64_t most_units, const SetLimits& limits) {
  std::vector<UnitId> order = merger.sets();
  std::set<std::pair<UnitId, UnitId>> refused;
  while (!few_enough(merger, most_units)) {
    check_time();
    std::optional<std::size_t> best;
    const auto time = [&](std::size_t i) {
      return merger.time(order[i]) + merger.time(order[i + 1]);
    };
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      check_time_at(i);
      if (time(i) > limits.time || refused.contains({order[i], order[i + 1]})) continue;
      if (!best || time(i) < time(*best)) best = i;
    }
    if (!best) return;
    const UnitId group = merger.members(order[*best]).front();
    if (!merger.merge(order[*best], order[*best + 1], limits)) {
      refused.emplace(order[*best], order[*best + 1]);
      continue;
    }
    order[*best] = merger.set_of(group);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
}

// From the first on, each is filled up with those that follow.
void fill_in_order(Merger& merger, std::int64_t most_units, const SetLimits& limits) {
  const std::vector<UnitId> order = merger.sets();
  UnitId last = order.front();
  for (const UnitId set : order) {
    check_time_at(set);
    if (few_enough(merger, most_units)) return;
    if (set == last) continue;
    const UnitId group = merger.members(set).front();
    merger.merge(last, set, limits);
    last = merger.set_of(group);
  }
}

void merge_acyclic(Merger& merger, std::int64_t most_units, Limits limits) {
  const Merger before = merger;
  for (const double share : kAcyclicShares) {
    merger = before;
    merge_shortest(merger, most_units, limits.with_time(shares(merger, most_units, share)));
    if (share == kAcyclicShares.back()) break;
    merge_neighbours(merger, most_units, limits.now());
    if (few_enough(merger, most_units)) return;
  }
  const Merger halves = merger;
  while (!few_enough(merger, most_units)) {
    check_time();
    merger = halves;
    fill_in_order(merger, most_units, limits.now());
    if (limits.everything()) return;
    limits.raise();
  }
}

}  // namespace

void merge_to_size(Merger& merger, std::int64_t most_units) {
  if (few_enough(merger, most_units)) return;
  Limits limits(merger, most_units);
  join_strangers(merger, most_units, limits);
  if (merger.acyclic()) {
    merge_acyclic(merger, most_units, limits);
    return;
  }
  while (true) {
    check_time();
    merge_shortest(merger, most_units, limits.now());
    if (few_enough(merger, most_units)) return;
    merger.dissolve(most_units, limits.now());
    if (few_enough(merger, most_units) || limits.everything()) return;
    limits.raise();
  }
}

Nanoseconds useful_share(const Merger& merger, std::int64_t most_units) {
  return shares(merger, most_units, merger.acyclic() ? kAcyclicShares.back() : kLargestShare);
}

}  // namespace emplace::learn
