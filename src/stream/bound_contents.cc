// Shrinks the problem of one class of devices for periods within a limit. Invariant: every content
// (set of items) that a device of the class can hold in such a period is a union of units. Items
// are forbidden where their time, with the nets that must then be cut, is above the limit or their
// memory above the capacity. A net whose weight is above the limit cannot be cut: its members are
// united, or forbidden if one of them is forbidden already. Each conclusion may lead to others, so
// this is repeated until nothing changes or after 30 rounds; stopping early is correct, with more
// units than needed. A device that is alone in its class holds exactly what the others leave, and
// so also unites what all others unite.
//
// Only what no placement within the limit does is taken out, so a bound on what is left holds. A
// round takes O(pins log pins). Ours; the same idea as in destructive bounds (Klein and Scholl,
// EJOR 112(2), 1999).
#include "stream/bound_contents.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/union_find.h"

namespace emplace {
namespace {

constexpr int kMaxRounds = 30;  // what follows after them is left to the tables
constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

// Shrinks the items of one class to units until nothing more follows from the limit.
class Shrinking {
 public:
  Shrinking(const StreamModel& model, const DeviceClass& device_class, Nanoseconds limit)
      : model_(model), class_(device_class), limit_(limit), sets_(model.num_items()) {}

  void unite(std::uint32_t a, std::uint32_t b) { sets_.unite(a, b); }
  // Of the item's set; kNowhere where it cannot be held. Once settled.
  std::uint32_t representative(std::uint32_t item) {
    const std::uint32_t set = sets_.find(item);
    return forbidden(set) ? kNowhere : set;
  }

  void settle() {
    for (int round = 0; round < kMaxRounds; ++round) {
      sum_sets();
      const bool united = unite_heavy_nets();
      if (!forbid_sets() && !united) return;
    }
    sum_sets();
  }

  ContentGraph graph();

 private:
  struct NetKey {
    bool outside;
    std::vector<std::uint32_t> members;  // representatives of sets that may be held
    bool operator<(const NetKey& other) const {
      return std::tie(outside, members) < std::tie(other.outside, other.members);
    }
  };
  struct NetSum {
    Nanoseconds weight = 0;
    Nanoseconds traffic = 0;
  };

  bool forbidden(std::uint32_t representative) const { return time_[representative] >= kNever; }
  void sum_sets();
  bool unite_heavy_nets();
  bool forbid_sets();

  const StreamModel& model_;
  const DeviceClass& class_;
  Nanoseconds limit_;
  UnionFind sets_;
  // By representative. Forbidden sets have the time kNever, and stay so.
  std::vector<Nanoseconds> time_;
  std::vector<Nanoseconds>
      alone_;  // what holding it costs at least: its time, and what it must pay
  std::vector<Bytes> memory_;
  std::vector<std::uint8_t> never_;  // by item: found to be impossible
  std::map<NetKey, NetSum> nets_;
};

void Shrinking::sum_sets() {
  const std::uint32_t items = model_.num_items();
  time_.assign(items, 0);
  memory_.assign(items, 0);
  never_.resize(items, 0);
  for (std::uint32_t item = 0; item < items; ++item) {
    const std::uint32_t set = sets_.find(item);
    const bool impossible = class_.time[item] >= kNever || never_[item] != 0;
    time_[set] = impossible ? kNever : std::min(kNever, time_[set] + class_.time[item]);
    memory_[set] += model_.memory(item);
  }
  for (std::uint32_t item = 0; item < items; ++item) {
    const std::uint32_t set = sets_.find(item);
    if (memory_[set] > class_.capacity || time_[set] > limit_) time_[set] = kNever;
  }
  alone_ = time_;
  nets_.clear();
  for (std::uint32_t net = 0; net < model_.num_nets(); ++net) {
    if (class_.weight[net] == 0 && class_.traffic[net] == 0) continue;
    std::vector<std::uint32_t> members{sets_.find(model_.source(net))};
    for (const std::uint32_t sink : model_.sinks(net)) members.push_back(sets_.find(sink));
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.size() < 2) continue;
    const auto held = std::remove_if(members.begin(), members.end(),
                                     [&](std::uint32_t set) { return forbidden(set); });
    const bool outside = held != members.end();
    members.erase(held, members.end());
    if (members.empty()) continue;
    NetSum& sum = nets_[{outside, std::move(members)}];
    sum.weight = std::min(kNever, sum.weight + class_.weight[net]);
    sum.traffic = std::min(kNever, sum.traffic + class_.traffic[net]);
  }
  for (const auto& [key, sum] : nets_) {
    if (key.outside && key.members.size() == 1) {
      alone_[key.members[0]] = std::min(kNever, alone_[key.members[0]] + sum.weight);
    }
  }
}

// Paying for such a net is beyond the limit: a device holds all of it or nothing.
bool Shrinking::unite_heavy_nets() {
  bool changed = false;
  for (const auto& [key, sum] : nets_) {
    if (sum.weight <= limit_) continue;
    for (const std::uint32_t member : key.members) {
      if (key.outside) {
        changed = true;
        never_[member] = 1;
      } else {
        changed = sets_.unite(key.members[0], member) || changed;
      }
    }
  }
  return changed;
}

bool Shrinking::forbid_sets() {
  bool changed = false;
  for (std::uint32_t item = 0; item < model_.num_items(); ++item) {
    if (sets_.find(item) != item || forbidden(item) || alone_[item] <= limit_) continue;
    never_[item] = 1;
    changed = true;
  }
  return changed;
}

ContentGraph Shrinking::graph() {
  ContentGraph result;
  std::vector<std::uint32_t> unit_of(model_.num_items(), 0);
  result.set_of.resize(model_.num_items());
  for (std::uint32_t item = 0; item < model_.num_items(); ++item) {
    const std::uint32_t set = sets_.find(item);
    result.set_of[item] = set;
    if (forbidden(set)) continue;
    if (set == item) {
      unit_of[item] = result.num_units();
      result.items.emplace_back();
      result.time.push_back(time_[item]);
      result.memory.push_back(memory_[item]);
    }
    result.items[unit_of[set]].push_back(item);
  }
  result.order.resize(result.num_units());
  std::iota(result.order.begin(), result.order.end(), 0U);
  for (const auto& [key, sum] : nets_) {
    ContentNet net{{}, key.outside, sum.weight, sum.traffic};
    for (const std::uint32_t member : key.members) net.units.push_back(unit_of[member]);
    result.nets.push_back(std::move(net));
  }
  return result;
}

// Unites in `one` the items that each of `others` holds together or cannot hold.
void unite_as_others_do(Shrinking& one, const std::vector<Shrinking*>& others,
                        std::uint32_t items) {
  std::map<std::vector<std::uint32_t>, std::uint32_t> first;
  for (std::uint32_t item = 0; item < items; ++item) {
    std::vector<std::uint32_t> key;
    for (Shrinking* other : others) key.push_back(other->representative(item));
    const auto [known, added] = first.try_emplace(std::move(key), item);
    if (!added) one.unite(known->second, item);
  }
}

}  // namespace

double fractional_value(const ContentGraph& graph, const std::vector<std::int32_t>& values,
                        Nanoseconds limit) {
  std::vector<std::uint32_t> order(graph.num_units());
  std::iota(order.begin(), order.end(), 0U);
  const auto density = [&](std::uint32_t unit) {
    return static_cast<double>(values[unit]) / static_cast<double>(graph.time[unit]);
  };
  double value = 0;
  std::erase_if(order, [&](std::uint32_t unit) {
    if (graph.time[unit] == 0) value += static_cast<double>(values[unit]);
    return graph.time[unit] == 0;
  });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return density(a) > density(b); });
  auto left = static_cast<double>(limit);
  for (const std::uint32_t unit : order) {
    const double part = std::min(1.0, left / static_cast<double>(graph.time[unit]));
    value += part * static_cast<double>(values[unit]);
    left -= part * static_cast<double>(graph.time[unit]);
    if (part < 1) break;
  }
  return value;
}

std::vector<ContentGraph> find_contents(const StreamModel& model,
                                        const std::vector<DeviceClass>& classes,
                                        Nanoseconds limit) {
  std::vector<Shrinking> shrinkings;
  for (const DeviceClass& device_class : classes) {
    shrinkings.emplace_back(model, device_class, limit).settle();
  }
  // A device that is the only one of its class holds what the others leave. With one class of
  // several devices the others are of that class too, and nothing follows.
  for (std::size_t i = 0; i < classes.size() && classes.size() > 1; ++i) {
    if (classes[i].devices.size() > 1) continue;
    std::vector<Shrinking*> others;
    for (std::size_t j = 0; j < classes.size(); ++j) {
      if (j != i) others.push_back(&shrinkings[j]);
    }
    unite_as_others_do(shrinkings[i], others, model.num_items());
    shrinkings[i].settle();
  }
  std::vector<ContentGraph> result;
  for (Shrinking& shrinking : shrinkings) result.push_back(shrinking.graph());
  return result;
}

}  // namespace emplace
