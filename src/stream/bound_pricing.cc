#include "stream/bound_pricing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/wide.h"

namespace emplace {
namespace {

// Two of them can be added.
constexpr std::int32_t kTooMuch = std::numeric_limits<std::int32_t>::max() / 2;
constexpr std::int32_t kMemoryTop = 4096;
constexpr std::size_t kFewestParts = 16;
constexpr std::size_t kMostParts = 256;

// The one loop that matters.
void lower_all(std::int32_t* to, const std::int32_t* from, std::size_t count, std::int32_t add) {
  for (std::size_t i = 0; i < count; ++i) to[i] = std::min(to[i], from[i] + add);
}

Bytes sum(const std::vector<Bytes>& memory) {
  return std::accumulate(memory.begin(), memory.end(), Bytes{0});
}

}  // namespace

ContentPricer::ContentPricer(const ContentGraph& graph, Bytes capacity, Nanoseconds limit,
                             std::size_t max_cells, std::int32_t usual_top)
    : graph_(graph), limit_(limit), max_cells_(max_cells) {
  while ((limit >> load_shift_) >= kTooMuch / 2) ++load_shift_;
  scaled_limit_ = static_cast<std::int32_t>(limit >> load_shift_);
  const std::size_t lists =
      max_cells / (static_cast<std::size_t>(usual_top) + 1) / std::max(1U, graph.num_units());
  paths_ = find_paths(graph, limit, lists);
  count_states();
  parts_.assign(graph.num_units(), 0);
  if (sum(graph.memory) <= capacity || !memory_can_run_out(capacity)) return;
  const std::size_t room = max_cells / (static_cast<std::size_t>(usual_top) + 1) / first_.back();
  const std::size_t parts = std::clamp(room, kFewestParts + 1, kMostParts) - 1;
  rows_ = static_cast<std::uint32_t>(parts) + 1;
  for (std::uint32_t unit = 0; unit < graph.num_units(); ++unit) {
    parts_[unit] = static_cast<std::uint32_t>(static_cast<Wide>(graph.memory[unit]) * parts /
                                              static_cast<Wide>(capacity));
  }
  if (first_.back() * rows_ <= lists * graph.num_units()) return;
  paths_ = find_paths(graph, limit, lists / rows_);
  count_states();
}

void ContentPricer::count_states() {
  first_ = {0, 1};
  for (const PathStep& step : paths_.steps) first_.push_back(first_.back() + step.moves.size());
}

// Whether some content within the limit could need more than the capacity.
bool ContentPricer::memory_can_run_out(Bytes capacity) {
  ContentValues values;
  for (const Bytes memory : graph_.memory) {
    const Wide scaled = static_cast<Wide>(memory) * kMemoryTop;
    values.units.push_back(static_cast<std::int32_t>((scaled + static_cast<Wide>(capacity) - 1) /
                                                     static_cast<Wide>(capacity)));
  }
  run(std::move(values), kMemoryTop + 1, [] { return false; });
  return most(limit_) > kMemoryTop;
}

std::int64_t ContentPricer::largest_top() const {
  const std::size_t width = max_cells_ / (first_.back() * rows_);
  return std::min<std::int64_t>(std::numeric_limits<std::int32_t>::max() / 4,
                                static_cast<std::int64_t>(width) - 1);
}

std::int32_t ContentPricer::cost(const PathMove& move) const {
  return static_cast<std::int32_t>(std::min<Nanoseconds>(kTooMuch, move.load >> load_shift_));
}

std::int64_t ContentPricer::gain(std::uint32_t unit, const PathMove& move) const {
  const Wide lost = (static_cast<Wide>(move.traffic) * static_cast<Wide>(values_.price)) >>
                    ContentValues::kTrafficShift;
  const std::int64_t value = move.holds ? values_.units[unit] : 0;
  return value - static_cast<std::int64_t>(std::min<Wide>(lost, static_cast<Wide>(top_) + 1));
}

// The value before a move that must be at least `value` after it. Negative values count as 0, and
// those above the top as the top: both too high, never too low.
std::int64_t ContentPricer::source_value(std::int64_t value, std::int64_t gain) const {
  if (value == 0) return 0;
  return std::clamp<std::int64_t>(value - gain, 0, top_);
}

bool ContentPricer::run(ContentValues values, std::int32_t top, const std::function<bool()>& stop) {
  EMPLACE_CHECK(values.units.size() == graph_.num_units() && top >= 0);
  values_ = std::move(values);
  top_ = top;
  width_ = static_cast<std::size_t>(top) + 1;
  if (cells_.size() < first_.back() * rows_ * width_) cells_.resize(first_.back() * rows_ * width_);
  reach_.assign(first_.back() * rows_, -1);
  for (std::uint32_t row = 0; row < rows_; ++row) {
    reach_[row] = 0;
    *cells(row) = 0;
  }
  for (std::size_t i = 0; i < paths_.steps.size(); ++i) {
    if (stop()) return false;
    for (std::size_t state = 0; state < paths_.steps[i].moves.size(); ++state) {
      for (std::uint32_t row = 0; row < rows_; ++row) fill(i, state, row);
    }
  }
  return true;
}

void ContentPricer::fill(std::size_t step, std::size_t state, std::uint32_t row) {
  const std::uint32_t unit = paths_.steps[step].unit;
  const auto moves = paths_.steps[step].moves[state];
  const std::size_t target = list(step + 1, state, row);
  std::int32_t* to = cells(target);
  std::int64_t filled = -1;  // the largest value with a load so far
  for (const PathMove& move : moves) {
    if (move.holds && parts_[unit] > row) continue;
    const std::size_t source = list(step, move.from, move.holds ? row - parts_[unit] : row);
    const std::int64_t reach = reach_[source];
    if (reach < 0) continue;
    const std::int32_t* from = cells(source);
    const std::int32_t add = cost(move);
    const std::int64_t gained = gain(unit, move);
    // What is at the top may be worth more.
    std::int64_t last = reach == top_ ? top_ : std::clamp<std::int64_t>(reach + gained, 0, top_);
    if (gained >= 0) last = std::min<std::int64_t>(top_, reach + gained);
    for (; filled < last; ++filled) to[filled + 1] = kTooMuch;
    // Values whose source is the same for all: 0 below, the top above.
    const std::int64_t low = std::min(last, std::max<std::int64_t>(0, gained));
    for (std::int64_t value = 0; value <= low; ++value) {
      to[value] = std::min(to[value], from[0] + add);
    }
    const std::int64_t high = std::min(last, top_ + gained);
    if (high > low)
      lower_all(to + low + 1, from + (low + 1 - gained), static_cast<std::size_t>(high - low), add);
    for (std::int64_t value = std::max(low, high) + 1; value <= last; ++value) {
      to[value] = std::min(to[value], from[top_] + add);
    }
  }
  while (filled >= 0 && to[filled] > scaled_limit_) --filled;
  reach_[target] = static_cast<std::int32_t>(filled);
}

std::int32_t ContentPricer::most(Nanoseconds load) const {
  const std::size_t end = list(paths_.steps.size(), 0, rows_ - 1);
  const std::int32_t* begin = cells(end);
  const auto scaled = static_cast<std::int32_t>(std::min(load, limit_) >> load_shift_);
  const std::int32_t* after = std::upper_bound(begin, begin + reach_[end] + 1, scaled);
  EMPLACE_CHECK(after != begin);  // to hold nothing is no load
  return static_cast<std::int32_t>(after - begin) - 1;
}

PricedContent ContentPricer::content(Nanoseconds load) const {
  PricedContent result;
  std::int64_t value = most(load);
  const std::int32_t scaled = cells(list(paths_.steps.size(), 0, rows_ - 1))[value];
  result.load = static_cast<Nanoseconds>(scaled) << load_shift_;
  std::size_t state = 0;
  std::uint32_t row = rows_ - 1;
  for (std::size_t i = paths_.steps.size(); i-- > 0;) {
    const std::uint32_t unit = paths_.steps[i].unit;
    const std::int32_t least = cells(list(i + 1, state, row))[value];
    bool found = false;
    for (const PathMove& move : paths_.steps[i].moves[state]) {
      if (move.holds && parts_[unit] > row) continue;
      const std::uint32_t source_row = move.holds ? row - parts_[unit] : row;
      const std::size_t source = list(i, move.from, source_row);
      const std::int64_t before = source_value(value, gain(unit, move));
      if (before > reach_[source] || cells(source)[before] + cost(move) != least) continue;
      if (move.holds) result.units.push_back(unit);
      result.traffic = std::min(kNever, result.traffic + move.traffic);
      value = before;
      state = move.from;
      row = source_row;
      found = true;
      break;
    }
    EMPLACE_CHECK(found);
  }
  std::sort(result.units.begin(), result.units.end());
  return result;
}

}  // namespace emplace
