// Is there a placement of period `target`? If so, the contents of its devices cover all rows.
// Prices on rows (and on traffic) refute that when all devices together, each with its most
// valuable content within the target, are worth less than the rows' prices sum up to. Any prices
// will do, so a refutation is proven whatever led to them: tables are exact in integers
// (bound_pricing.h), and `lower_` rises by what they prove. Prices come from the linear program
// over the contents found so far (bound_master.h), mixed with the best so far (Wentges 1997) and
// held near them (a trust region), since those of the program alone swing.
//
// The target halves the interval between what is proven and what cannot be refuted: the linear
// program's own optimum is a limit, as it may hold everything with fractions of contents. So the
// bound is at most the program's, and may stay below the best placement. First atoms are merged
// into few rows, which is quick and weaker, then split again. The work is in the tables: units *
// states * resolution for each class and round.
#include "stream/bound_covering.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "stream/bound_order.h"

namespace emplace {
namespace {

constexpr double kLastResolution = 64000;
constexpr double kMergedResolution = 4000;  // where rows are merged
constexpr double kFiner = 4;
constexpr double kMostHeadroom = 100;
constexpr double kSmoothing = 0.7;
constexpr int kColumnsPerRound = 8;
constexpr double kFirstFreedom = 0.02;  // of prices, as a part of them
constexpr double kFullFreedom = 1e3;
constexpr double kTolerance = 1e-7;
constexpr int kPatience = 12;                  // steps
constexpr double kLaterFreedom = 0.16;         // at most, for a new target
constexpr Nanoseconds kPrecision = 200'000;    // targets are this part of the period apart
constexpr Nanoseconds kFirstPrecision = 1000;  // with merged rows
constexpr std::uint32_t kMostSmallRows = 100;  // no more need not be merged
constexpr std::int64_t kFirstRowsPerDevice = 8;
constexpr std::int64_t kMoreRows = 4;
constexpr std::int64_t kMostRowsPerDevice = 32;

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

std::size_t largest_class(const std::vector<DeviceClass>& classes) {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < classes.size(); ++i) {
    if (classes[i].devices.size() > classes[largest].devices.size()) largest = i;
  }
  return largest;
}

}  // namespace

StreamCovering::StreamCovering(const StreamModel& model, const std::vector<DeviceClass>& classes,
                               Nanoseconds lower, Nanoseconds limit, bool count_memory,
                               const StreamCovering* before)
    : lower_(lower),
      limit_(limit),
      target_(limit),
      unrefutable_(limit + 1),
      last_(limit + 1),
      traffic_periods_(traffic_periods(model)),
      model_(model),
      freedom_(kFirstFreedom) {
  std::vector<ContentGraph> graphs = find_contents(model, classes, limit);
  std::vector<const ContentGraph*> of_classes;
  for (const ContentGraph& graph : graphs) of_classes.push_back(&graph);
  rows_.emplace(model, of_classes);
  if (!rows_->possible()) return;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const bool known = before != nullptr && before->tables_ != nullptr &&
                       before->tables_->graph(i).items == graphs[i].items;
    graphs[i].order = known ? before->tables_->graph(i).order : order_units(graphs[i]);
  }
  rows_->order_as(graphs[largest_class(classes)]);
  tables_ = std::make_unique<CoveringTables>(classes, std::move(graphs), *rows_, limit,
                                             count_memory, traffic_periods_);
  detail_.resolution = tables_->first_resolution();
  if (rows_->num_atoms() > kMostSmallRows) {
    rows_per_device_ = kFirstRowsPerDevice;
    merge_rows();
  }
  begin_master();
  center_ = prices_by_time();
  if (before == nullptr || before->tables_ == nullptr) return;
  center_.rows = rows_->convert(*before->rows_, before->center_.rows);
  center_.traffic = before->center_.traffic;
}

void StreamCovering::merge_rows() {
  const double most = rows_per_device_ > 0
                          ? static_cast<double>(limit_) / static_cast<double>(rows_per_device_)
                          : 0;
  rows_->merge(model_, most);
}

void StreamCovering::begin_master() {
  master_ =
      std::make_unique<CoveringMaster>(rows_->num_rows(), tables_->class_sizes(), traffic_periods_);
  for (const CoveringContent& content : contents_) master_->add(column(content));
}

// Rows become smaller. False when they are as small as can be.
bool StreamCovering::split_rows() {
  if (rows_per_device_ == 0) return false;
  const CoveringRows before = *rows_;
  const bool last = rows_per_device_ * kMoreRows > kMostRowsPerDevice;
  rows_per_device_ = last ? 0 : rows_per_device_ * kMoreRows;
  merge_rows();
  center_.rows = rows_->convert(before, center_.rows);
  begin_master();
  unrefutable_ = last_;
  return true;
}

// With devices too dear for any content to gain.
CoveringPrices StreamCovering::prices_by_time() const {
  CoveringPrices prices;
  prices.classes.assign(tables_->class_sizes().size(), 1.0);
  const std::vector<double>& times = rows_->row_times();
  const double total = std::accumulate(times.begin(), times.end(), 0.0);
  for (const double time : times) prices.rows.push_back(time / total);
  return prices;
}

CoveringColumn StreamCovering::column(const CoveringContent& content) const {
  CoveringColumn result{content.device_class, {}, {}, content.load, content.traffic};
  std::vector<std::pair<std::uint32_t, double>> parts;
  for (const std::uint32_t atom : content.atoms) {
    parts.emplace_back(rows_->row_of(atom), rows_->share(atom));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [row, share] : parts) {
    if (result.rows.empty() || result.rows.back() != row) {
      result.rows.push_back(row);
      result.shares.push_back(0);
    }
    result.shares.back() = std::min(1.0, result.shares.back() + share);
  }
  return result;
}

bool StreamCovering::add(const CoveringContent& content) {
  if (!master_->add(column(content))) return false;
  contents_.push_back(content);
  return true;
}

double StreamCovering::gain(const CoveringColumn& column, const CoveringPrices& prices) {
  double worth = -prices.traffic * static_cast<double>(column.traffic);
  for (std::size_t i = 0; i < column.rows.size(); ++i) {
    worth += prices.rows[column.rows[i]] * column.shares[i];
  }
  return worth - prices.classes[column.device_class];
}

// The best content of each class, and the best ones of less load, as long as the master problem
// gains by them. Returns how many new ones it gains by.
int StreamCovering::add_columns(const CoveringPrices& master_prices) {
  int gaining = 0;
  for (std::uint32_t i = 0; i < tables_->class_sizes().size(); ++i) {
    Nanoseconds period = target_;
    for (int j = 0; j < kColumnsPerRound && period >= 0; ++j) {
      const CoveringContent content = tables_->best_content(i, period);
      const bool gains = gain(column(content), master_prices) > kTolerance;
      if (j > 0 && !gains) break;
      if (add(content) && gains) ++gaining;
      period = content.load - 1;
    }
    later_.push_back(tables_->best_content(i, lower_ + (target_ - lower_) / 2));
  }
  return gaining;
}

// Makes the prices of the tables the center if they are better than it is.
void StreamCovering::center_on(const CoveringPrices& prices) {
  const std::int64_t held = tables_->capacity(target_);
  const double devices = held == CoveringTables::kUnknown
                             ? 1 / detail_.headroom
                             : static_cast<double>(tables_->sum()) / static_cast<double>(held);
  if (devices <= center_devices_) return;
  steps_since_better_ = 0;
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
  const auto stop = [&] { return budget.spent(rounds); };
  if (stop() || !tables_->fill(*rows_, prices, detail_, stop)) return Outcome::kStopped;
  ++rounds;
  lower_ = std::max(lower_, tables_->proven());
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
    const bool enough = tables_->capacity(target_) != CoveringTables::kUnknown;
    if (enough || detail_.headroom > kMostHeadroom) return outcome;
    detail_.headroom *= 2;
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
  if (lower_ >= last_) return false;
  const Nanoseconds parts = rows_per_device_ > 0 ? kFirstPrecision : kPrecision;
  const Nanoseconds step = std::max<Nanoseconds>(1, lower_ / parts);
  if ((unrefutable_ - lower_ < step || lower_ >= unrefutable_) && !split_rows()) return false;
  target_ = lower_ + (unrefutable_ - lower_ - 1) / 2;
  for (const CoveringContent& content : later_) add(content);
  later_.clear();
  center_devices_ = 0;
  freedom_ = std::min(freedom_, kLaterFreedom);
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
  steps_since_better_ = 0;
  if (solution.held_back && freedom_ < kFullFreedom) {
    freedom_ *= 2;
    bound_prices();
    return true;
  }
  const bool allowed = solution.devices <= 1 + kTolerance;
  if (!allowed &&
      detail_.resolution < (rows_per_device_ > 0 ? kMergedResolution : kLastResolution)) {
    detail_.resolution *= kFiner;
    return true;
  }
  // Contents in use hold everything, and allow the period of the longest.
  unrefutable_ = std::min(unrefutable_, allowed ? std::max(lower_, solution.longest) : target_);
  return choose_target();
}

bool StreamCovering::step(const Budget& budget, std::int64_t& rounds) {
  if (!rows_->possible()) lower_ = limit_ + 1;
  if (!rows_->possible() || rows_->num_atoms() == 0 || lower_ >= last_) return false;
  if (target_ >= unrefutable_ && !choose_target()) return false;
  if (center_devices_ == 0) {
    const Outcome first = price_center(budget, rounds);
    if (first == Outcome::kStopped) return false;
    if (first == Outcome::kProven) return choose_target();
  }
  ++steps_since_better_;
  const CoveringSolution solution = master_->solve(target_, seconds_left(budget));
  if (!solution.solved) return false;
  Outcome outcome = Outcome::kNothing;
  if (solution.devices > 1 + kTolerance) outcome = improve(solution, budget, rounds);
  if (outcome == Outcome::kProven) return choose_target();
  if (outcome == Outcome::kNothing) return finer(solution);
  // The last bit of what merged rows can prove would take longest.
  if (rows_per_device_ > 0 && steps_since_better_ > kPatience) return finer(solution);
  return outcome == Outcome::kImproved;
}

}  // namespace emplace
