#include "learn/units/merger.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

std::vector<std::uint32_t> singletons(const Problem& problem) {
  std::vector<std::uint32_t> labels(problem.num_groups());
  std::iota(labels.begin(), labels.end(), 0U);
  return labels;
}

// What adds nothing is within every limit.
template <class T>
bool within(T a, T b, T most) {
  return a + b <= most || std::min(a, b) == 0;
}

}  // namespace

Merger::Merger(const Problem& problem, bool acyclic)
    : groups_(problem, singletons(problem)),
      set_of_(groups_.size()),
      members_(groups_.size()),
      time_(groups_.size()),
      memory_(groups_.size()),
      allowed_(groups_.size()),
      count_(groups_.size()) {
  std::iota(set_of_.begin(), set_of_.end(), 0U);
  for (UnitId group = 0; group < groups_.size(); ++group) {
    check_time_at(group);
    members_[group] = {group};
    time_[group] = groups_.mean_duration(group);
    memory_[group] = problem.group_resident_bytes(group);
    total_time_ += time_[group];
    const auto devices = groups_.allowed_devices(group);
    allowed_[group].assign(devices.begin(), devices.end());
  }
  connect();
  if (acyclic) order_.emplace(precedence_of(groups_));
}

void Merger::connect() {
  exchanged_.assign(groups_.size(), {});
  for (UnitId group = 0; group < groups_.size(); ++group) {
    check_time_at(group);
    const auto successors = groups_.successors(group);
    for (std::size_t i = 0; i < successors.size(); ++i) {
      const UnitId a = set_of_[group];
      const UnitId b = set_of_[successors[i]];
      if (a == b) continue;
      exchanged_[a][b] += groups_.successor_bytes(group)[i];
      exchanged_[b][a] += groups_.successor_bytes(group)[i];
    }
  }
}

std::vector<UnitId> Merger::sets() const {
  std::vector<UnitId> result;
  for (UnitId set = 0; set < members_.size(); ++set) {
    if (exists(set)) result.push_back(set);
  }
  if (order_) {
    std::sort(result.begin(), result.end(),
              [this](UnitId a, UnitId b) { return order_->place(a) < order_->place(b); });
  }
  return result;
}

bool Merger::merge(UnitId a, UnitId b, const SetLimits& limits) {
  if (a == b || !within(time_[a], time_[b], limits.time) ||
      !within(memory_[a], memory_[b], limits.memory)) {
    return false;
  }
  std::vector<DeviceId> common = common_devices(allowed_[a], allowed_[b]);
  if (common.empty() || (order_ && !order_->may_merge(a, b))) return false;
  const auto size = [this](UnitId set) { return exchanged_[set].size() + members_[set].size(); };
  if (size(a) < size(b)) std::swap(a, b);
  if (order_) order_->merge(a, b);
  allowed_[a] = std::move(common);
  absorb(a, b);
  return true;
}

void Merger::absorb(UnitId kept, UnitId other) {
  for (const UnitId group : members_[other]) set_of_[group] = kept;
  members_[kept].insert(members_[kept].end(), members_[other].begin(), members_[other].end());
  members_[other].clear();
  time_[kept] += time_[other];
  memory_[kept] += memory_[other];
  for (const auto& [next, bytes] : exchanged_[other]) {
    exchanged_[next].erase(other);
    if (next == kept) continue;
    exchanged_[kept][next] += bytes;
    exchanged_[next][kept] += bytes;
  }
  exchanged_[other].clear();
  --count_;
}

bool Merger::merge_with_nearest(UnitId set, const SetLimits& limits) {
  std::vector<std::pair<Bytes, UnitId>> neighbours;
  for (const auto& [other, bytes] : exchanged_[set]) neighbours.emplace_back(bytes, other);
  std::sort(neighbours.begin(), neighbours.end(), [this](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    return time_[a.second] != time_[b.second] ? time_[a.second] < time_[b.second]
                                              : a.second < b.second;
  });
  return std::any_of(neighbours.begin(), neighbours.end(),
                     [&](const auto& neighbour) { return merge(set, neighbour.second, limits); });
}

bool Merger::has_room(UnitId set, UnitId group, const SetLimits& limits) const {
  return set != set_of_[group] && exists(set) &&
         within(time_[set], groups_.mean_duration(group), limits.time) &&
         within(memory_[set], groups_.problem().group_resident_bytes(group), limits.memory) &&
         !common_devices(allowed_[set], groups_.allowed_devices(group)).empty();
}

std::optional<UnitId> Merger::refuge(UnitId group, const SetLimits& limits) const {
  std::map<UnitId, Bytes> near;
  const auto hear = [&](std::span<const UnitId> others, std::span<const Bytes> bytes) {
    for (std::size_t i = 0; i < others.size(); ++i) near[set_of_[others[i]]] += bytes[i];
  };
  hear(groups_.successors(group), groups_.successor_bytes(group));
  hear(groups_.predecessors(group), groups_.predecessor_bytes(group));
  std::optional<UnitId> best;
  for (const auto& [set, bytes] : near) {
    if (has_room(set, group, limits) && (!best || bytes > near[*best])) best = set;
  }
  if (best) return best;
  const Nanoseconds duration = groups_.mean_duration(group);
  for (const auto& [time, set] : by_time_) {
    if (!within(time, duration, limits.time)) break;  // those that follow take no less
    if (has_room(set, group, limits)) return set;
  }
  return {};
}

void Merger::move(UnitId group, UnitId to) {
  const UnitId from = set_of_[group];
  std::erase(members_[from], group);
  members_[to].push_back(group);
  set_of_[group] = to;
  const auto take_longer = [this](UnitId set, Nanoseconds duration) {
    by_time_.erase({time_[set], set});
    time_[set] += duration;
    if (exists(set)) by_time_.emplace(time_[set], set);
  };
  take_longer(from, -groups_.mean_duration(group));
  take_longer(to, groups_.mean_duration(group));
  const Bytes memory = groups_.problem().group_resident_bytes(group);
  memory_[from] -= memory;
  memory_[to] += memory;
  allowed_[to] = common_devices(allowed_[to], groups_.allowed_devices(group));
  if (members_[from].empty()) --count_;
}

bool Merger::take_apart(UnitId set, const SetLimits& limits) {
  std::vector<UnitId> longest_first = members_[set];
  std::stable_sort(longest_first.begin(), longest_first.end(), [this](UnitId a, UnitId b) {
    return groups_.mean_duration(a) > groups_.mean_duration(b);
  });
  for (const UnitId group : longest_first) {
    check_time_at(group);
    const std::optional<UnitId> to = refuge(group, limits);
    if (!to) return false;
    move(group, *to);
  }
  return true;
}

void Merger::dissolve(std::int64_t most_units, const SetLimits& limits) {
  std::vector<UnitId> shortest_first = sets();
  std::stable_sort(shortest_first.begin(), shortest_first.end(),
                   [this](UnitId a, UnitId b) { return time_[a] < time_[b]; });
  for (const UnitId set : shortest_first) by_time_.emplace(time_[set], set);
  for (const UnitId set : shortest_first) {
    check_time_at(set);
    if (static_cast<std::int64_t>(count_) <= most_units) break;
    take_apart(set, limits);
  }
  by_time_.clear();
  connect();
}

}  // namespace emplace::learn
