#include "learn/units/orders.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "learn/nn/deadline.h"

namespace emplace::learn {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// A tree whose leaves are units: node i is unit i, those beyond are merges.
class MergeTree {
 public:
  explicit MergeTree(const UnitGraph& units)
      : earliest_(units.size()),
        time_(units.size()),
        exchanged_(units.size()),
        node_(units.size()) {
    std::iota(earliest_.begin(), earliest_.end(), 0U);
    std::iota(node_.begin(), node_.end(), 0U);
    children_.resize(units.size(), {kNone, kNone});
    for (UnitId unit = 0; unit < units.size(); ++unit) {
      check_time_at(unit);
      time_[unit] = static_cast<double>(units.mean_duration(unit)) + 1;
      queue_.emplace(time_[unit], unit);
      const auto successors = units.successors(unit);
      for (std::size_t i = 0; i < successors.size(); ++i) {
        const double bytes = static_cast<double>(units.successor_bytes(unit)[i]) + 1;
        exchanged_[unit][successors[i]] += bytes;
        exchanged_[successors[i]][unit] += bytes;
      }
    }
  }

  // What nobody exchanges anything with remains: one root for each part of the graph.
  std::vector<UnitId> leaves() {
    std::vector<std::pair<UnitId, std::uint32_t>> roots;  // by their earliest unit
    while (!queue_.empty()) {
      check_time();
      const std::uint32_t set = queue_.begin()->second;
      queue_.erase(queue_.begin());
      const std::optional<std::uint32_t> other = nearest(set);
      if (other) {
        merge(set, *other);
      } else {
        roots.emplace_back(earliest_[set], node_[set]);
      }
    }
    std::sort(roots.begin(), roots.end());
    std::vector<UnitId> result;
    for (const auto& [unit, root] : roots) append_leaves(root, result);
    return result;
  }

 private:
  // Large sets exchange much with everyone: the root of their time makes up for it.
  std::optional<std::uint32_t> nearest(std::uint32_t set) const {
    std::optional<std::uint32_t> best;
    double most = 0;
    for (const auto& [other, bytes] : exchanged_[set]) {
      const double attraction = bytes / std::sqrt(time_[other]);
      if (!best || attraction > most) {
        best = other;
        most = attraction;
      }
    }
    return best;
  }

  // Two sets, the first of which is not in the queue; the one with more neighbours goes on.
  void merge(std::uint32_t a, std::uint32_t b) {
    queue_.erase({time_[b], b});
    if (exchanged_[a].size() > exchanged_[b].size()) std::swap(a, b);
    const bool a_first = earliest_[a] < earliest_[b];
    children_.emplace_back(a_first ? node_[a] : node_[b], a_first ? node_[b] : node_[a]);
    node_[b] = static_cast<std::uint32_t>(children_.size() - 1);
    earliest_[b] = std::min(earliest_[a], earliest_[b]);
    time_[b] += time_[a];
    for (const auto& [other, bytes] : exchanged_[a]) {
      exchanged_[other].erase(a);
      if (other == b) continue;
      exchanged_[b][other] += bytes;
      exchanged_[other][b] += bytes;
    }
    exchanged_[a].clear();
    queue_.emplace(time_[b], b);
  }

  void append_leaves(std::uint32_t root, std::vector<UnitId>& into) const {
    std::vector<std::uint32_t> open{root};
    while (!open.empty()) {
      const std::uint32_t node = open.back();
      open.pop_back();
      if (children_[node].first == kNone) {
        into.push_back(node);
      } else {
        open.push_back(children_[node].second);
        open.push_back(children_[node].first);
      }
    }
  }

  // By set, which is named by one of its units.
  std::vector<UnitId> earliest_;
  std::vector<double> time_;
  std::vector<std::map<std::uint32_t, double>> exchanged_;
  std::vector<std::uint32_t> node_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> children_;  // by node
  std::set<std::pair<double, std::uint32_t>> queue_;               // sets by time
};

}  // namespace

std::vector<UnitId> topological_order(const UnitGraph& units) {
  std::vector<UnitId> result(units.size());
  std::iota(result.begin(), result.end(), 0U);
  return result;
}

std::vector<UnitId> locality_order(const UnitGraph& units) {
  return MergeTree(units).leaves();
}

}  // namespace emplace::learn
