#include "stream/population.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace emplace {

StreamPopulation::StreamPopulation(const StreamLevel& level, std::size_t capacity)
    : level_(level), capacity_(capacity) {
  for (std::uint32_t item = 0; item < level.num_items(); ++item) {
    weight_.push_back(static_cast<double>(level.least_time(item)) + 1);
    total_weight_ += weight_.back();
  }
}

const StreamMember& StreamPopulation::best() const {
  EMPLACE_CHECK(!members_.empty());
  return *std::min_element(
      members_.begin(), members_.end(),
      [](const StreamMember& a, const StreamMember& b) { return a.value < b.value; });
}

void StreamPopulation::add(StreamMember member) {
  std::vector<std::size_t> alike;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (likeness(members_[i].device_of, member.device_of) > kMostAlike) alike.push_back(i);
  }
  if (!alike.empty()) {
    const bool better = std::all_of(alike.begin(), alike.end(), [&](std::size_t i) {
      return member.value < members_[i].value;
    });
    if (!better) return;
    members_[alike[0]] = std::move(member);
    for (std::size_t i = alike.size(); i > 1; --i) {
      members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(alike[i - 1]));
    }
    return;
  }
  if (!full()) {
    members_.push_back(std::move(member));
    return;
  }
  const auto worst = std::max_element(
      members_.begin(), members_.end(),
      [](const StreamMember& a, const StreamMember& b) { return a.value < b.value; });
  if (member.value < worst->value) *worst = std::move(member);
}

double StreamPopulation::likeness(const std::vector<DeviceId>& a,
                                  const std::vector<DeviceId>& b) const {
  const StreamDevices& devices = level_.devices();
  std::vector<double> shared(static_cast<std::size_t>(devices.count) * devices.count, 0);
  for (std::size_t item = 0; item < a.size(); ++item) {
    shared[devices.pair(a[item], b[item])] += weight_[item];
  }
  // Greedily, the pair that shares most first.
  std::vector<std::tuple<double, DeviceId, DeviceId>> pairs;
  for (DeviceId x = 0; x < devices.count; ++x) {
    for (DeviceId y = 0; y < devices.count; ++y) {
      if (devices.twin[x] != devices.twin[y] || shared[devices.pair(x, y)] == 0) continue;
      pairs.emplace_back(-shared[devices.pair(x, y)], x, y);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  std::vector<bool> x_taken(devices.count, false);
  std::vector<bool> y_taken(devices.count, false);
  double agreed = 0;
  for (const auto& [negative, x, y] : pairs) {
    if (x_taken[x] || y_taken[y]) continue;
    x_taken[x] = y_taken[y] = true;
    agreed -= negative;
  }
  return agreed / total_weight_;
}

std::vector<std::uint32_t> overlay(const std::vector<DeviceId>& a, const std::vector<DeviceId>& b,
                                   DeviceId num_devices) {
  std::vector<std::uint32_t> result(a.size());
  for (std::size_t item = 0; item < a.size(); ++item) {
    result[item] = static_cast<std::uint32_t>(a[item]) * num_devices + b[item];
  }
  return result;
}

}  // namespace emplace
