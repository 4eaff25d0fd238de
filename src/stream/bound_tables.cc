#include "stream/bound_tables.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/wide.h"

namespace emplace {
namespace {

constexpr std::size_t kMaxCells = std::size_t{1} << 26;  // of all tables, 4 bytes each
constexpr double kFirstResolution = 1000;
constexpr double kCoarsestResolution = 250;  // where that leaves nets as they are
constexpr double kFirstCells = 1 << 22;      // of the first tables, where that is finer
constexpr double kFirstResolutionAtMost = 8000;
constexpr double kMostValue = 1 << 29;  // of all atoms together
// Times channels and a period it fits in 128 bits.
constexpr double kMostTrafficPrice = static_cast<double>(std::int64_t{1} << 44);

}  // namespace

CoveringTables::CoveringTables(const std::vector<DeviceClass>& classes,
                               std::vector<ContentGraph> graphs, const CoveringRows& rows,
                               Nanoseconds limit, bool count_memory, std::int64_t traffic_periods)
    : limit_(limit), traffic_periods_(traffic_periods) {
  for (ContentGraph& graph : graphs) classes_.push_back({std::move(graph)});
  double finest = kFirstResolutionAtMost;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    sizes_.push_back(static_cast<std::int64_t>(classes[i].devices.size()));
    Class& one = classes_[i];
    for (const auto& items : one.graph.items) one.atoms.push_back(rows.atoms_of(items));
    for (const double resolution : {kFirstResolution, kCoarsestResolution}) {
      one.pricer = std::make_unique<ContentPricer>(
          one.graph, count_memory ? classes[i].capacity : kUnlimited, limit_,
          kMaxCells / classes.size(), static_cast<std::int32_t>(2 * resolution));
      if (one.pricer->nets_eased() == 0) break;
    }
    finest = std::min(finest, kFirstCells / static_cast<double>(one.pricer->num_lists()));
  }
  first_resolution_ = std::max(kFirstResolution, finest);
}

std::uint32_t CoveringTables::nets_eased() const {
  std::uint32_t result = 0;
  for (const Class& one : classes_) result = std::max(result, one.pricer->nets_eased());
  return result;
}

bool CoveringTables::counts_memory() const {
  return std::any_of(classes_.begin(), classes_.end(),
                     [](const Class& one) { return one.pricer->counts_memory(); });
}

void CoveringTables::set_values(const CoveringRows& rows, const CoveringPrices& prices,
                                double resolution) {
  const std::vector<double>& times = rows.row_times();
  const double time = std::accumulate(times.begin(), times.end(), 0.0);
  const double total = std::accumulate(prices.rows.begin(), prices.rows.end(), 0.0);
  // A device's content is worth about its share of the work.
  const double devices =
      std::max(1.0, time / static_cast<double>(std::max<Nanoseconds>(1, limit_)));
  const double scale = std::min(resolution * devices, kMostValue) / std::max(total, 1e-300);
  const std::vector<std::int32_t> atoms = rows.round(prices.rows, scale);
  sum_ = std::accumulate(atoms.begin(), atoms.end(), std::int64_t{0});
  const double traffic = std::ldexp(prices.traffic * scale, ContentValues::kTrafficShift);
  traffic_price_ = static_cast<std::int64_t>(std::min(traffic, kMostTrafficPrice));
  for (Class& one : classes_) {
    one.values = {{}, traffic_price_};
    for (const auto& of_unit : one.atoms) {
      std::int32_t value = 0;
      for (const std::uint32_t atom : of_unit) value += atoms[atom];
      one.values.units.push_back(value);
    }
  }
}

// False where tables would be too large.
bool CoveringTables::set_tops(double headroom) {
  bool fits = true;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    Class& one = classes_[i];
    const double most = fractional_value(one.graph, one.values.units, limit_) + 2;
    const double enough =
        std::ceil(headroom * static_cast<double>(sum_) / static_cast<double>(sizes_[i]));
    one.top = static_cast<std::int32_t>(std::min(most, enough));
    fits = fits && one.top <= one.pricer->largest_top();
  }
  return fits;
}

bool CoveringTables::fill(const CoveringRows& rows, const CoveringPrices& prices,
                          const TableDetail& detail, const std::function<bool()>& stop) {
  double resolution = detail.resolution;
  set_values(rows, prices, resolution);
  while (!set_tops(detail.headroom) && resolution >= 1) {
    resolution *= 0.75;
    set_values(rows, prices, resolution);
  }
  for (Class& one : classes_) {
    cells_ += static_cast<std::int64_t>(one.pricer->num_lists()) * (one.top + 1);
    if (!one.pricer->run(std::move(one.values), one.top, stop)) return false;
  }
  return true;
}

std::int64_t CoveringTables::capacity(Nanoseconds period) const {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const std::int64_t most = classes_[i].pricer->most(period);
    if (most >= classes_[i].top) return kUnknown;
    result += sizes_[i] * most;
  }
  if (traffic_price_ == 0) return result;
  const Wide traffic = static_cast<Wide>(traffic_periods_) * static_cast<Wide>(period) *
                       static_cast<Wide>(traffic_price_);
  const Wide worth = (traffic >> ContentValues::kTrafficShift) + 1;
  return static_cast<std::int64_t>(
      std::min<Wide>(static_cast<Wide>(result) + worth, static_cast<Wide>(kUnknown)));
}

Nanoseconds CoveringTables::proven() const {
  Nanoseconds low = 0;
  Nanoseconds high = limit_ + 1;
  while (low < high) {
    const Nanoseconds middle = low + (high - low) / 2;
    if (capacity(middle) >= sum_) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

CoveringContent CoveringTables::best_content(std::uint32_t device_class, Nanoseconds period) const {
  const PricedContent priced = classes_[device_class].pricer->content(period);
  CoveringContent content{device_class, {}, priced.load, priced.traffic};
  for (const std::uint32_t unit : priced.units) {
    const auto& atoms = classes_[device_class].atoms[unit];
    content.atoms.insert(content.atoms.end(), atoms.begin(), atoms.end());
  }
  std::sort(content.atoms.begin(), content.atoms.end());
  return content;
}

}  // namespace emplace
