#include "placers/stream/bound_covering.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/wide.h"

namespace emplace {
namespace {

constexpr std::uint32_t kNoRow = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMaxCells = std::size_t{1} << 26;  // of all tables, 4 bytes each
constexpr double kFirstResolution = 1000;
constexpr double kCoarsestResolution = 250;  // where that leaves nets as they are
constexpr double kFirstCells = 1 << 22;      // of the first tables, where that is finer
constexpr double kFirstResolutionAtMost = 8000;
constexpr double kLastResolution = 64000;
constexpr double kFiner = 4;
constexpr double kMostValue = 1 << 29;  // of all rows together
// Times channels and a period it fits in 128 bits.
constexpr double kMostTrafficPrice = static_cast<double>(std::int64_t{1} << 44);
constexpr double kFirstHeadroom = 1.5;  // of a table's values above what a device must hold
constexpr double kMostHeadroom = 100;
constexpr double kSmoothing = 0.7;
constexpr int kColumnsPerRound = 8;
constexpr double kFirstFreedom = 0.02;  // of prices, as a part of them
constexpr double kFullFreedom = 1e3;
constexpr double kTolerance = 1e-7;
constexpr Nanoseconds kPrecision = 200'000;  // targets are this part of the period apart

Nanoseconds fastest_time(const StreamModel& model, std::uint32_t item) {
  Nanoseconds fastest = kNever;
  for (const DeviceId device : model.problem().allowed_devices(item)) {
    fastest = std::min(fastest, model.time(item, device));
  }
  return fastest;
}

double seconds_left(const Budget& budget) {
  constexpr double kLong = 1e6;
  return budget.seconds ? std::max(0.01, *budget.seconds - budget.elapsed_seconds()) : kLong;
}

CoveringPrices mix(const CoveringPrices& a, const CoveringPrices& b, double share_of_a) {
  CoveringPrices result = b;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    result.rows[i] += share_of_a * (a.rows[i] - b.rows[i]);
  }
  result.traffic += share_of_a * (a.traffic - b.traffic);
  return result;
}

}  // namespace

StreamCovering::StreamCovering(const StreamModel& model, const std::vector<DeviceClass>& classes,
                               Nanoseconds lower, Nanoseconds limit, bool count_memory)
    : lower_(lower),
      limit_(limit),
      target_(limit),
      unrefutable_(limit + 1),
      traffic_periods_(traffic_periods(model)),
      headroom_(kFirstHeadroom),
      freedom_(kFirstFreedom) {
  std::vector<ContentGraph> graphs = find_contents(model, classes, limit);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    Class& added = classes_.emplace_back();
    added.size = static_cast<std::int64_t>(classes[i].devices.size());
    added.graph = std::move(graphs[i]);
  }
  add_rows(model);
  if (!possible_) return;
  add_pricers(classes, count_memory);
  center_ = prices_by_time();
}

// A row is a set of items that every class holds together or not at all.
void StreamCovering::add_rows(const StreamModel& model) {
  std::vector<Nanoseconds> fastest(model.num_items(), kNever);
  for (const Class& one : classes_) {
    for (const auto& items : one.graph.items) {
      for (const std::uint32_t item : items) fastest[item] = fastest_time(model, item);
    }
  }
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  row_of_.assign(model.num_items(), kNoRow);
  for (std::uint32_t item = 0; item < model.num_items(); ++item) {
    if (fastest[item] == kNever) possible_ = false;
    if (fastest[item] == 0 || fastest[item] == kNever) continue;
    std::vector<std::uint32_t> sets;
    for (const Class& one : classes_) sets.push_back(one.graph.set_of[item]);
    const auto next = static_cast<std::uint32_t>(row_time_.size());
    row_of_[item] = known.try_emplace(std::move(sets), next).first->second;
    if (row_of_[item] == next) row_time_.push_back(0);
    row_time_[row_of_[item]] += static_cast<double>(fastest[item]);
  }
}

void StreamCovering::add_pricers(const std::vector<DeviceClass>& classes, bool count_memory) {
  std::vector<std::int64_t> sizes;
  double finest = kFirstResolutionAtMost;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    Class& one = classes_[i];
    for (const auto& items : one.graph.items) {
      std::vector<std::uint32_t>& rows = one.rows.emplace_back();
      for (const std::uint32_t item : items) {
        if (row_of_[item] != kNoRow) rows.push_back(row_of_[item]);
      }
      std::sort(rows.begin(), rows.end());
      rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    }
    for (const double resolution : {kFirstResolution, kCoarsestResolution}) {
      one.pricer = std::make_unique<ContentPricer>(
          one.graph, count_memory ? classes[i].capacity : kUnlimited, limit_,
          kMaxCells / classes_.size(), static_cast<std::int32_t>(2 * resolution));
      if (one.pricer->nets_eased() == 0) break;
    }
    sizes.push_back(one.size);
    finest = std::min(finest, kFirstCells / static_cast<double>(one.pricer->num_lists()));
  }
  resolution_ = std::max(kFirstResolution, finest);
  master_ = std::make_unique<CoveringMaster>(static_cast<std::uint32_t>(row_time_.size()), sizes,
                                             traffic_periods_);
}

std::uint32_t StreamCovering::nets_eased() const {
  std::uint32_t result = 0;
  for (const Class& one : classes_) {
    if (one.pricer != nullptr) result = std::max(result, one.pricer->nets_eased());
  }
  return result;
}

bool StreamCovering::counts_memory() const {
  return std::any_of(classes_.begin(), classes_.end(), [](const Class& one) {
    return one.pricer != nullptr && one.pricer->counts_memory();
  });
}

// With devices too dear for any content to gain.
CoveringPrices StreamCovering::prices_by_time() const {
  CoveringPrices prices;
  prices.classes.assign(classes_.size(), 1.0);
  const double total = std::accumulate(row_time_.begin(), row_time_.end(), 0.0);
  for (const double time : row_time_) prices.rows.push_back(time / total);
  return prices;
}

StreamCovering::Integers StreamCovering::to_integers(const CoveringPrices& prices,
                                                     double resolution) const {
  const double time = std::accumulate(row_time_.begin(), row_time_.end(), 0.0);
  const double total = std::accumulate(prices.rows.begin(), prices.rows.end(), 0.0);
  // A device's content is worth about its share of the work.
  const double devices =
      std::max(1.0, time / static_cast<double>(std::max<Nanoseconds>(1, limit_)));
  const double scale = std::min(resolution * devices, kMostValue) / std::max(total, 1e-300);
  Integers result;
  for (const double price : prices.rows) {
    result.rows.push_back(static_cast<std::int32_t>(std::lround(price * scale)));
    result.sum += result.rows.back();
  }
  const double traffic = std::ldexp(prices.traffic * scale, ContentValues::kTrafficShift);
  result.traffic = static_cast<std::int64_t>(std::min(traffic, kMostTrafficPrice));
  return result;
}

bool StreamCovering::fill_tables(const CoveringPrices& prices, const Budget& budget,
                                 std::int64_t rounds) {
  std::vector<ContentValues> values;
  bool fits = false;
  for (double resolution = resolution_; !fits; resolution *= 0.75) {
    integers_ = to_integers(prices, resolution);
    values.clear();
    fits = true;
    for (Class& one : classes_) {
      ContentValues& of_units = values.emplace_back();
      of_units.price = integers_.traffic;
      for (const auto& rows : one.rows) {
        std::int32_t value = 0;
        for (const std::uint32_t row : rows) value += integers_.rows[row];
        of_units.units.push_back(value);
      }
      const double most = fractional_value(one.graph, of_units.units, limit_) + 2;
      const double enough =
          std::ceil(headroom_ * static_cast<double>(integers_.sum) / static_cast<double>(one.size));
      one.top = static_cast<std::int32_t>(std::min(most, enough));
      fits = fits && (one.top <= one.pricer->largest_top() || resolution < 1);
    }
  }
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const bool done = classes_[i].pricer->run(std::move(values[i]), classes_[i].top,
                                              [&] { return budget.spent(rounds); });
    if (!done) return false;
  }
  return true;
}

// At least what all devices together can hold with this period, in values. kUnknown: much more
// than there is.
std::int64_t StreamCovering::capacity(Nanoseconds period) const {
  std::int64_t result = 0;
  for (const Class& one : classes_) {
    const std::int64_t most = one.pricer->most(period);
    if (most >= one.top) return kUnknown;
    result += one.size * most;
  }
  const Wide traffic = static_cast<Wide>(traffic_periods_) * static_cast<Wide>(period) *
                       static_cast<Wide>(integers_.traffic);
  const Wide worth = (traffic >> ContentValues::kTrafficShift) + 1;
  if (integers_.traffic == 0) return result;
  return static_cast<std::int64_t>(
      std::min<Wide>(static_cast<Wide>(result) + worth, static_cast<Wide>(kUnknown)));
}

// The first period with which the devices can hold everything.
Nanoseconds StreamCovering::proven() const {
  Nanoseconds low = 0;
  Nanoseconds high = limit_ + 1;
  while (low < high) {
    const Nanoseconds middle = low + (high - low) / 2;
    if (capacity(middle) >= integers_.sum) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

CoveringColumn StreamCovering::best_column(std::uint32_t device_class, Nanoseconds period) const {
  const PricedContent content = classes_[device_class].pricer->content(period);
  CoveringColumn column{device_class, {}, content.load, content.traffic};
  for (const std::uint32_t unit : content.units) {
    const auto& rows = classes_[device_class].rows[unit];
    column.rows.insert(column.rows.end(), rows.begin(), rows.end());
  }
  std::sort(column.rows.begin(), column.rows.end());
  return column;
}

double StreamCovering::gain(const CoveringColumn& column, const CoveringPrices& prices) {
  double worth = -prices.traffic * static_cast<double>(column.traffic);
  for (const std::uint32_t row : column.rows) worth += prices.rows[row];
  return worth - prices.classes[column.device_class];
}

// The best content of each class, and the best ones of less load, as long as the master problem
// gains by them. Returns how many new ones it gains by.
int StreamCovering::add_columns(const CoveringPrices& master_prices) {
  int gaining = 0;
  for (std::uint32_t i = 0; i < classes_.size(); ++i) {
    Nanoseconds period = target_;
    for (int j = 0; j < kColumnsPerRound && period >= 0; ++j) {
      const CoveringColumn column = best_column(i, period);
      const bool gains = gain(column, master_prices) > kTolerance;
      if (j > 0 && !gains) break;
      if (master_->add(column) && gains) ++gaining;
      period = column.load - 1;
    }
    later_.push_back(best_column(i, lower_ + (target_ - lower_) / 2));
  }
  return gaining;
}

// Makes the prices of the tables the center if they are better than it is.
void StreamCovering::center_on(const CoveringPrices& prices) {
  const std::int64_t held = capacity(target_);
  const double devices = held == kUnknown
                             ? 1 / headroom_
                             : static_cast<double>(integers_.sum) / static_cast<double>(held);
  if (devices <= center_devices_) return;
  center_devices_ = devices;
  center_ = prices;
  const double total = std::accumulate(prices.rows.begin(), prices.rows.end(), 0.0);
  for (double& price : center_.rows) price *= devices / total;
  center_.traffic *= devices / total;
  bound_prices();
}

StreamCovering::Outcome StreamCovering::price(const CoveringPrices& prices,
                                              const CoveringPrices& master_prices,
                                              const Budget& budget, std::int64_t& rounds) {
  if (budget.spent(rounds) || !fill_tables(prices, budget, rounds)) return Outcome::kStopped;
  ++rounds;
  lower_ = std::max(lower_, proven());
  if (lower_ > target_) return Outcome::kProven;
  center_on(prices);
  const int gaining = add_columns(master_prices);
  return gaining > 0 ? Outcome::kImproved : Outcome::kNothing;
}

// How good the center is for another target. Tables must be large enough to tell.
StreamCovering::Outcome StreamCovering::price_center(const Budget& budget, std::int64_t& rounds) {
  const CoveringPrices center = center_;
  for (;;) {
    center_devices_ = 0;
    const Outcome outcome = price(center, center, budget, rounds);
    if (outcome == Outcome::kStopped || outcome == Outcome::kProven) return outcome;
    if (capacity(target_) != kUnknown || headroom_ > kMostHeadroom) return outcome;
    headroom_ *= 2;
  }
}

// Prices between the best so far and the master problem's; nearer to the latter while they find
// nothing new.
StreamCovering::Outcome StreamCovering::improve(const CoveringSolution& solution,
                                                const Budget& budget, std::int64_t& rounds) {
  for (int attempt = 1;; ++attempt) {
    const double share = std::max(0.0, 1 - attempt * (1 - kSmoothing));
    const Outcome outcome =
        price(mix(center_, solution.prices, share), solution.prices, budget, rounds);
    if (outcome != Outcome::kNothing || share == 0) return outcome;
  }
}

bool StreamCovering::choose_target() {
  const Nanoseconds step = std::max<Nanoseconds>(1, lower_ / kPrecision);
  if (unrefutable_ - lower_ < step || lower_ >= unrefutable_) return false;
  target_ = lower_ + (unrefutable_ - lower_ - 1) / 2;
  for (const CoveringColumn& column : later_) master_->add(column);
  later_.clear();
  center_devices_ = 0;
  return true;
}

// The master problem's first prices are far from any use; near the center they converge sooner.
void StreamCovering::bound_prices() {
  const double mean = std::accumulate(center_.rows.begin(), center_.rows.end(), 0.0) /
                      static_cast<double>(center_.rows.size());
  std::vector<double> lower;
  std::vector<double> upper;
  for (const double price : center_.rows) {
    lower.push_back(price - freedom_ * (price + mean));
    upper.push_back(price + freedom_ * (price + mean));
  }
  master_->set_price_bounds(lower, upper);
}

// What to do when the prices cannot be improved: false when nothing is left to try.
bool StreamCovering::finer(const CoveringSolution& solution) {
  if (solution.held_back && freedom_ < kFullFreedom) {
    freedom_ *= 2;
    bound_prices();
    return true;
  }
  const bool allowed = solution.devices <= 1 + kTolerance;
  if (!allowed && resolution_ < kLastResolution) {
    resolution_ *= kFiner;
    return true;
  }
  // Contents in use hold everything, and allow the period of the longest.
  unrefutable_ = allowed ? std::max(lower_, solution.longest) : target_;
  return choose_target();
}

// False when nothing is left to do.
bool StreamCovering::step(const Budget& budget, std::int64_t& rounds) {
  if (center_devices_ == 0) {
    const Outcome first = price_center(budget, rounds);
    if (first == Outcome::kStopped) return false;
    if (first == Outcome::kProven) return choose_target();
  }
  const CoveringSolution solution = master_->solve(target_, seconds_left(budget));
  if (!solution.solved) return false;
  Outcome outcome = Outcome::kNothing;
  if (solution.devices > 1 + kTolerance) outcome = improve(solution, budget, rounds);
  if (outcome == Outcome::kProven) return choose_target();
  if (outcome == Outcome::kNothing) return finer(solution);
  return outcome == Outcome::kImproved;
}

void StreamCovering::run(const Budget& budget, std::int64_t& rounds,
                         const std::function<void()>& on_improvement) {
  Nanoseconds reported = lower_;
  bool more = possible_ && !row_time_.empty();
  if (!possible_) lower_ = limit_ + 1;
  do {
    more = more && step(budget, rounds);
    if (lower_ > reported) on_improvement();
    reported = lower_;
  } while (more);
}

}  // namespace emplace
