#include "stream/coarsen.h"

#include <algorithm>
#include <numeric>

namespace emplace {
namespace {

constexpr std::uint32_t kUnmatched = ~std::uint32_t{0};
// Of a larger net only so many pins, taken at random, are looked at.
constexpr std::size_t kPinsSeen = 16;

class Pairing {
 public:
  Pairing(const StreamLevel& level, std::span<const std::uint32_t> part_of_item, Rng& rng)
      : level_(level), part_of_item_(part_of_item), rng_(rng) {
    Nanoseconds total = 0;
    for (std::uint32_t item = 0; item < level.num_items(); ++item) total += level.least_time(item);
    // An item that fills a good part of a device leaves nothing to balance with.
    largest_ = total / (2 * static_cast<Nanoseconds>(level.devices().count)) + 1;
    for (const Bytes capacity : level.devices().capacity) {
      largest_memory_ = std::max(largest_memory_, capacity);
    }
    score_.assign(level.num_items(), 0);
  }

  // Returns the number of clusters.
  std::uint32_t run(std::vector<std::uint32_t>& cluster_of) {
    const std::uint32_t items = level_.num_items();
    std::vector<std::uint32_t> order(items);
    std::iota(order.begin(), order.end(), 0U);
    rng_.shuffle(order);
    mate_.assign(items, kUnmatched);
    for (const std::uint32_t item : order) {
      if (mate_[item] != kUnmatched) continue;
      const std::uint32_t mate = choose_mate(item);
      mate_[item] = mate;
      mate_[mate] = item;
    }
    cluster_of.assign(items, kUnmatched);
    std::uint32_t clusters = 0;
    for (std::uint32_t item = 0; item < items; ++item) {
      if (cluster_of[item] != kUnmatched) continue;
      cluster_of[item] = cluster_of[mate_[item]] = clusters++;
    }
    return clusters;
  }

 private:
  bool compatible(std::uint32_t a, std::uint32_t b) const {
    return (part_of_item_.empty() || part_of_item_[a] == part_of_item_[b]) &&
           level_.common_set(a, b) != StreamLevel::kNoSet &&
           level_.least_time(a) + level_.least_time(b) <= largest_ &&
           level_.memory(a) + level_.memory(b) <= largest_memory_;
  }

  // The item itself where it finds none.
  std::uint32_t choose_mate(std::uint32_t item) {
    candidates_.clear();
    for (const std::uint32_t net : level_.nets(item)) {
      const auto pins = level_.pins(net);
      const auto length = static_cast<double>(level_.mean_length(net) + 1);
      const double weight = length / static_cast<double>(pins.size() - 1);
      if (pins.size() <= kPinsSeen) {
        for (const std::uint32_t pin : pins) consider(item, pin, weight);
      } else {
        for (std::size_t i = 0; i < kPinsSeen; ++i) {
          consider(item, pins[rng_.below(pins.size())], weight);
        }
      }
    }
    std::uint32_t best = item;
    double best_score = 0;
    for (const std::uint32_t candidate : candidates_) {
      const double score = score_[candidate] * (kLeastLuck + rng_.uniform());
      score_[candidate] = 0;
      if (score <= best_score || !compatible(item, candidate)) continue;
      best = candidate;
      best_score = score;
    }
    return best;
  }

  void consider(std::uint32_t item, std::uint32_t pin, double weight) {
    if (pin == item || mate_[pin] != kUnmatched) return;
    if (score_[pin] == 0) candidates_.push_back(pin);
    score_[pin] += weight;
  }

  static constexpr double kLeastLuck = 0.1;

  const StreamLevel& level_;
  std::span<const std::uint32_t> part_of_item_;
  Rng& rng_;
  Nanoseconds largest_ = 0;
  Bytes largest_memory_ = 0;
  std::vector<std::uint32_t> mate_;
  std::vector<double> score_;  // 0: not a candidate
  std::vector<std::uint32_t> candidates_;
};

}  // namespace

StreamHierarchy::StreamHierarchy(const StreamLevel& finest, std::uint32_t coarsest,
                                 std::vector<std::uint32_t> part_of_item, Rng& rng,
                                 const StopCheck& stop)
    : finest_(finest) {
  while (level(num_levels() - 1).num_items() > coarsest && !stop(0)) {
    const StreamLevel& finer = level(num_levels() - 1);
    std::vector<std::uint32_t> cluster_of;
    const std::uint32_t clusters = Pairing(finer, part_of_item, rng).run(cluster_of);
    // With less than a twentieth of the items gone, another level is not worth its annealing.
    if (clusters >= finer.num_items() - finer.num_items() / 20) break;
    if (!part_of_item.empty()) {
      std::vector<std::uint32_t> parts(clusters);
      for (std::uint32_t item = 0; item < finer.num_items(); ++item) {
        parts[cluster_of[item]] = part_of_item[item];
      }
      part_of_item = std::move(parts);
    }
    coarser_.emplace_back(finer, cluster_of, clusters);
    cluster_of_.push_back(std::move(cluster_of));
  }
}

std::vector<DeviceId> StreamHierarchy::refine(std::size_t depth,
                                              const std::vector<DeviceId>& device_of) const {
  const std::vector<std::uint32_t>& cluster_of = cluster_of_[depth - 1];
  std::vector<DeviceId> result(cluster_of.size());
  for (std::size_t item = 0; item < result.size(); ++item) {
    result[item] = device_of[cluster_of[item]];
  }
  return result;
}

std::vector<DeviceId> StreamHierarchy::coarsen(std::vector<DeviceId> device_of) const {
  for (std::size_t depth = 1; depth < num_levels(); ++depth) {
    std::vector<DeviceId> coarser(level(depth).num_items());
    for (std::size_t item = 0; item < device_of.size(); ++item) {
      coarser[cluster_of_[depth - 1][item]] = device_of[item];
    }
    device_of = std::move(coarser);
  }
  return device_of;
}

}  // namespace emplace
