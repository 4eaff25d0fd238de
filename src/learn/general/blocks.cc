#include "learn/general/blocks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "learn/general/whole_parts.h"
#include "learn/nn/device_scores.h"
#include "learn/units/coordinates.h"

namespace emplace::learn {
namespace {

// In parts of what the furthest slice's distance counts.
constexpr double kLeastReach = 0.5;
constexpr double kMostReach = 2;

using Parts = std::vector<std::vector<UnitId>>;

// A unit is where its first group is.
Parts parts_by_unit(const UnitGraph& units, const PartOfGroup& part_of_group) {
  Parts all(1 + *std::max_element(part_of_group.begin(), part_of_group.end()));
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    all[part_of_group[units.groups(unit).front()]].push_back(unit);
  }
  const std::size_t most = units.size() / 2;
  std::erase_if(all, [&](const auto& part) { return part.empty() || part.size() > most; });
  return all;
}

}  // namespace

Blocks::Blocks(const UnitGraph& units) {
  for (const Line line : {Line::kLocality, Line::kDepth, Line::kModules}) {
    lines_.push_back(order_along(units, line));
  }
  std::vector<PartOfGroup> ways = whole_modules(units.problem());
  ways.push_back(parameter_sharers(units.problem()));
  for (const PartOfGroup& way : ways) {
    Parts parts = parts_by_unit(units, way);
    if (!parts.empty()) ways_.push_back(std::move(parts));
  }
}

std::size_t Blocks::size_at_random(Rng& rng) const {
  const double most = std::max(1.0, static_cast<double>(lines_.front().size()) / 4);
  return static_cast<std::size_t>(std::pow(most, rng.uniform()));
}

std::vector<UnitId> Blocks::draw(Rng& rng) const {
  if (ways_.empty() || rng.chance(0.5)) return draw(size_at_random(rng), rng);
  const Parts& parts = ways_[rng.below(ways_.size())];
  return parts[rng.below(parts.size())];
}

std::vector<UnitId> Blocks::draw(std::size_t size, Rng& rng) const {
  const std::vector<UnitId>& line = lines_[rng.below(lines_.size())];
  const std::size_t length = std::min(size, line.size());
  const auto first = static_cast<std::ptrdiff_t>(rng.below(line.size() - length + 1));
  return {line.begin() + first, line.begin() + first + static_cast<std::ptrdiff_t>(length)};
}

std::vector<UnitId> Blocks::draw_around(UnitId unit, Rng& rng) const {
  if (!ways_.empty() && rng.chance(0.5)) {
    for (const std::vector<UnitId>& part : ways_[rng.below(ways_.size())]) {
      if (std::find(part.begin(), part.end(), unit) != part.end()) return part;
    }
  }
  const std::vector<UnitId>& line = lines_[rng.below(lines_.size())];
  const std::size_t length = size_at_random(rng);
  const auto at =
      static_cast<std::size_t>(std::find(line.begin(), line.end(), unit) - line.begin());
  const std::size_t before = std::min(at, rng.below(length));
  const std::size_t first = std::min(at - before, line.size() - length);
  const auto begin = line.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

std::vector<float> leaning_elsewhere(const std::vector<UnitId>& block,
                                     const std::vector<DeviceId>& placement,
                                     const std::vector<DeviceId>& used, std::size_t devices,
                                     Rng& rng) {
  std::vector<std::size_t> here(devices, 0);
  for (const UnitId unit : block) ++here[placement[unit]];
  const auto most =
      static_cast<DeviceId>(std::max_element(here.begin(), here.end()) - here.begin());
  std::vector<DeviceId> others = used;
  std::erase(others, most);
  if (others.empty()) return std::vector<float>(devices, 0);
  return leaning_to(others[rng.below(others.size())], devices, rng);
}

std::vector<float> leaning_to(DeviceId device, std::size_t devices, Rng& rng) {
  std::vector<float> result(devices, 0);
  const double reach = kLeastReach + (kMostReach - kLeastReach) * rng.uniform();
  result[device] = static_cast<float>(-DeviceScores::kFirstWeight * reach);
  return result;
}

}  // namespace emplace::learn
