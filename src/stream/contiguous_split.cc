// entry(I, s) is the least possible largest load when the units of ideal I are divided into
// consecutive parts, one for each of the devices that state s counts as taken. It follows from
// entries of smaller ideals: the last part is I without an ideal J inside it. Ideals are numbered
// by size, so that an entry is final when parts grow from its ideal.
//
// From each reached ideal a depth-first walk of the lattice visits every ideal above it that one
// part can reach, once, and keeps the part's sums up to date unit by unit. What is left out loses
// nothing below the limit: a part that fits no class in time and memory, as larger ones fit none
// either; an ideal of which the devices left cannot take the rest; states for which fewer devices
// have as low a load. Cuts are not monotone, so a load above the limit is only not used, and the
// walk goes on. So `solve` is exact below its limit; limits grow from a lower bound, and the first
// at which there is a split gives the best one. O(pairs of nested ideals * (nets of a unit +
// states)) at worst; a chain of n units has n^2 / 2 such pairs.
#include "stream/contiguous_split.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace emplace {
namespace {

// Entries of the table: about half a gigabyte.
constexpr std::size_t kMostEntries = std::size_t{1} << 25;
// How far above the lower bound the first limit is; each next gap is this many times as wide.
constexpr double kFirstGap = 1.0 / 64;
constexpr double kGapGrowth = 4;
// Filling the table counts too: so many entries take as long as one part.
constexpr std::size_t kEntriesPerPart = 16;
constexpr std::int64_t kPartsBetweenQuestions = 1 << 14;

// Devices of each class taken, as one number.
class Tally {
 public:
  Tally(const SplitProblem& problem, std::size_t most_devices) {
    for (const SplitClass& one : problem.classes) {
      stride_.push_back(size_);
      count_.push_back(one.devices.size());
      const std::size_t digits = one.devices.size() + 1;
      size_ = size_ > kMostEntries / digits ? kMostEntries + 1 : size_ * digits;
    }
    if (size_ > kMostEntries) return;
    for (std::size_t state = 0; state < size_; ++state) {
      std::size_t sum = 0;
      for (std::size_t i = 0; i < count_.size(); ++i) {
        taken_.push_back(static_cast<std::uint16_t>(state / stride_[i] % (count_[i] + 1)));
        sum += taken_.back();
      }
      left_.push_back(sum >= most_devices ? 0 : most_devices - sum);
    }
  }

  std::size_t size() const { return size_; }  // above kMostEntries: too many
  std::size_t stride(std::size_t device_class) const { return stride_[device_class]; }
  std::size_t taken(std::size_t state, std::size_t device_class) const {
    return taken_[state * count_.size() + device_class];
  }
  std::size_t left(std::size_t state, std::size_t device_class) const {
    return count_[device_class] - taken(state, device_class);
  }
  // Of all classes together, that may still be taken.
  std::size_t left(std::size_t state) const { return left_[state]; }

 private:
  std::vector<std::size_t> stride_;
  std::vector<std::size_t> count_;
  std::size_t size_ = 1;
  std::vector<std::uint16_t> taken_;  // [state][class]
  std::vector<std::size_t> left_;     // by state
};

// How much work, in time on the fastest class, one nanosecond of each class can do at most.
std::vector<double> class_speeds(const SplitProblem& problem,
                                 const std::vector<Nanoseconds>& least_time) {
  std::vector<double> speeds;
  for (const SplitClass& one : problem.classes) {
    double speed = 0;
    for (std::uint32_t unit = 0; unit < problem.num_units(); ++unit) {
      if (one.time[unit] == kNever || least_time[unit] == 0) continue;
      speed = std::max(speed,
                       static_cast<double>(least_time[unit]) / static_cast<double>(one.time[unit]));
    }
    speeds.push_back(speed);
  }
  return speeds;
}

class SplitTable {
 public:
  SplitTable(const SplitProblem& problem, const IdealLattice& lattice, const SplitLimits& limits)
      : problem_(problem),
        lattice_(lattice),
        limits_(limits),
        tally_(problem, limits.devices),
        num_classes_(problem.classes.size()),
        seen_(lattice.size(), 0),
        inside_(problem.pins.size(), 0),
        source_inside_(problem.pins.size(), 0) {
    EMPLACE_CHECK(num_classes_ <= 64);
    add_what_is_left();
    add_device_sums();
  }

  bool too_large() const { return tally_.size() > kMostEntries / lattice_.size(); }
  bool stopped() const { return stopped_; }
  std::int64_t parts() const { return parts_; }

  // No split's load is less.
  Nanoseconds lower_bound() const {
    const Nanoseconds longest =
        least_time_.empty() ? 0 : *std::max_element(least_time_.begin(), least_time_.end());
    if (speed_left_[0] <= 0) return longest;
    const double mean = static_cast<double>(work_left_[0]) / speed_left_[0];
    return std::max(longest, static_cast<Nanoseconds>(mean * (1 - 1e-9)));
  }

  // No part has a larger load.
  Nanoseconds upper_bound() const {
    Nanoseconds most = 0;
    for (const SplitClass& one : problem_.classes) {
      Nanoseconds sum = 0;
      for (const Nanoseconds time : one.time) sum += time == kNever ? 0 : time;
      for (const Nanoseconds weight : one.weight) sum += weight;
      most = std::max(most, sum);
    }
    return most;
  }

  // The best of the splits whose load is below `limit`.
  std::optional<ContiguousSplit> solve(Nanoseconds limit);

 private:
  struct Entry {
    Nanoseconds load = kNever;  // the largest so far
    std::uint32_t before = 0;   // the ideal without the last part
    std::uint32_t device_class = 0;
  };
  // A part that grows from the ideal that it begins at.
  struct Part {
    std::uint64_t classes = 0;  // bits: where all its units may be and fit
    Bytes memory = 0;
    Bytes temp = 0;
  };
  struct Charge {
    bool cut;
    bool arrives;
  };
  struct Frame {
    std::uint32_t ideal;
    std::uint32_t next;  // of its steps
    std::uint32_t element;
    Part part;
  };

  Entry& entry(std::uint32_t ideal, std::size_t state) {
    return entries_[ideal * tally_.size() + state];
  }
  void add_what_is_left();
  void add_device_sums();
  bool within_reach(std::uint32_t ideal, std::size_t state) const {
    // A hair more than exact, since speeds are rounded.
    return memory_left_[ideal] <= room_left_[state] &&
           static_cast<double>(work_left_[ideal]) <=
               static_cast<double>(limit_) * speed_left_[state] * (1 + 1e-9) + 1;
  }
  void find_live_states(std::uint32_t ideal);
  void grow_from(std::uint32_t first);
  Charge charge(std::uint32_t net) const;
  void change(std::uint32_t unit, bool joins);
  bool extend(Part& part, std::uint32_t unit) const;
  Nanoseconds load(std::size_t device_class) const;
  void relax(std::uint32_t first, std::uint32_t last, const Part& part);
  ContiguousSplit trace(std::size_t state);
  void push(std::uint32_t ideal, std::uint32_t element, const Part& part) {
    seen_[ideal] = round_;
    frames_.push_back({ideal, 0, element, part});
  }

  const SplitProblem& problem_;
  const IdealLattice& lattice_;
  const SplitLimits& limits_;
  Tally tally_;
  std::size_t num_classes_;
  std::vector<Nanoseconds> least_time_;  // by unit, of the classes
  std::vector<Nanoseconds> work_left_;   // by ideal: the least time of what is not in it
  std::vector<Bytes> memory_left_;       // by ideal, of what is not in it
  std::vector<double> speed_left_;       // by state, of the devices not taken
  std::vector<Bytes> room_left_;         // by state, on the devices not taken

  Nanoseconds limit_ = 0;
  std::vector<Entry> entries_;         // [ideal][state]
  std::vector<std::uint8_t> reached_;  // by ideal: some entry has a load
  std::vector<std::size_t> live_;      // states of the ideal that parts begin at
  std::vector<Nanoseconds> least_so_far_;
  std::vector<std::uint64_t> seen_;  // by ideal, the last round that looked at it
  std::uint64_t round_ = 0;
  std::vector<Frame> frames_;
  std::vector<Nanoseconds> time_;      // of the part, by class
  std::vector<Nanoseconds> cut_;       // by class: all that is cut, or what leaves
  std::vector<Nanoseconds> arriving_;  // by class
  std::vector<std::uint32_t> inside_;  // by net, its pins in the part
  std::vector<std::uint8_t> source_inside_;
  std::int64_t parts_ = 0;  // looked at
  bool stopped_ = false;
};

void SplitTable::add_what_is_left() {
  for (std::uint32_t unit = 0; unit < problem_.num_units(); ++unit) {
    Nanoseconds least = kNever;
    for (const SplitClass& one : problem_.classes) least = std::min(least, one.time[unit]);
    least_time_.push_back(least);
  }
  work_left_.assign(lattice_.size(), 0);
  memory_left_.assign(lattice_.size(), 0);
  for (std::uint32_t ideal = lattice_.size() - 1; ideal-- > 0;) {
    const auto [unit, next] = lattice_.steps(ideal)[0];
    work_left_[ideal] = std::min(kNever, work_left_[next] + least_time_[unit]);
    memory_left_[ideal] = memory_left_[next] + problem_.memory[unit];
  }
}

// The most that devices not taken can add up to, by state, where one of class i counts value[i].
template <class T>
std::vector<T> sums_left(const Tally& tally, const std::vector<T>& value) {
  std::vector<std::size_t> order(value.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return value[a] > value[b]; });
  constexpr T kMost = std::numeric_limits<T>::max();
  std::vector<T> result;
  for (std::size_t state = 0; state < tally.size(); ++state) {
    std::size_t devices = tally.left(state);
    T sum = 0;
    for (const std::size_t i : order) {
      const std::size_t used = std::min(devices, tally.left(state, i));
      devices -= used;
      for (std::size_t j = 0; j < used; ++j) sum = value[i] > kMost - sum ? kMost : sum + value[i];
    }
    result.push_back(sum);
  }
  return result;
}

void SplitTable::add_device_sums() {
  if (too_large()) return;
  speed_left_ = sums_left(tally_, class_speeds(problem_, least_time_));
  std::vector<Bytes> capacities;
  for (const SplitClass& one : problem_.classes) capacities.push_back(one.capacity);
  room_left_ = sums_left(tally_, capacities);
}

std::optional<ContiguousSplit> SplitTable::solve(Nanoseconds limit) {
  limit_ = limit;
  entries_.assign(lattice_.size() * tally_.size(), {});
  parts_ += static_cast<std::int64_t>(entries_.size() / kEntriesPerPart);
  time_.assign(num_classes_, 0);
  cut_.assign(num_classes_, 0);
  arriving_.assign(num_classes_, 0);
  const std::uint32_t full = lattice_.size() - 1;
  if (!within_reach(0, 0)) return std::nullopt;
  entry(0, 0).load = 0;
  reached_.assign(lattice_.size(), 0);
  reached_[0] = 1;
  for (std::uint32_t ideal = 0; ideal < full && !stopped_; ++ideal) {
    if (reached_[ideal] == 0) continue;
    find_live_states(ideal);
    if (!live_.empty()) grow_from(ideal);
  }
  if (stopped_) return std::nullopt;
  std::size_t best = 0;
  for (std::size_t state = 1; state < tally_.size(); ++state) {
    if (entry(full, state).load < entry(full, best).load) best = state;
  }
  if (entry(full, best).load >= limit_) return std::nullopt;
  return trace(best);
}

// Those from which parts are worth growing: no state of fewer devices has as low a load.
void SplitTable::find_live_states(std::uint32_t ideal) {
  live_.clear();
  least_so_far_.assign(tally_.size(), kNever);
  for (std::size_t state = 0; state < tally_.size(); ++state) {
    Nanoseconds& least = least_so_far_[state];
    for (std::size_t i = 0; i < num_classes_; ++i) {
      if (tally_.taken(state, i) == 0) continue;
      least = std::min(least, least_so_far_[state - tally_.stride(i)]);
    }
    const Nanoseconds load = entry(ideal, state).load;
    if (load >= least) continue;
    least = load;
    if (load < limit_ && tally_.left(state) > 0) live_.push_back(state);
  }
}

// Visits every ideal that a part from `first` can end at, once.
void SplitTable::grow_from(std::uint32_t first) {
  ++round_;
  Part nothing;
  nothing.classes = num_classes_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << num_classes_) - 1;
  push(first, 0, nothing);
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    const auto steps = lattice_.steps(frame.ideal);
    if (frame.next == steps.size() || stopped_) {
      const std::uint32_t element = frame.element;
      frames_.pop_back();
      if (!frames_.empty()) change(element, false);
      continue;
    }
    const IdealLattice::Step step = steps[frame.next++];
    if (seen_[step.ideal] == round_) continue;
    Part part = frame.part;
    if (!extend(part, step.element)) {
      // As no part that holds this one is better, whichever way it came about.
      seen_[step.ideal] = round_;
      continue;
    }
    change(step.element, true);
    push(step.ideal, step.element, part);
    relax(first, step.ideal, part);
    ++parts_;
    const bool ask = parts_ % kPartsBetweenQuestions == 0 && limits_.stop;
    if (parts_ >= limits_.parts || (ask && limits_.stop())) stopped_ = true;
  }
}

// Whether some class can hold the part with the unit. Time alone decides here: what is cut may be
// inside a larger part.
bool SplitTable::extend(Part& part, std::uint32_t unit) const {
  part.memory += problem_.memory[unit];
  part.temp = std::max(part.temp, problem_.temp[unit]);
  for (std::size_t i = 0; i < num_classes_; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if ((part.classes & bit) == 0) continue;
    const SplitClass& one = problem_.classes[i];
    const bool possible = one.time[unit] != kNever && time_[i] + one.time[unit] < limit_ &&
                          part.memory <= one.capacity && part.temp <= one.capacity - part.memory;
    if (!possible) part.classes &= ~bit;
  }
  return part.classes != 0;
}

// What the net costs the part: where it is cut, or where it leaves and where it arrives.
SplitTable::Charge SplitTable::charge(std::uint32_t net) const {
  const bool some = inside_[net] > 0;
  const bool all = inside_[net] == problem_.pins[net].size();
  if (problem_.rule == SplitRule::kAdd) return {some && !all, false};
  const bool source = source_inside_[net] != 0;
  return {source && !all, some && !source};
}

void SplitTable::change(std::uint32_t unit, bool joins) {
  const Nanoseconds sign = joins ? 1 : -1;
  for (std::size_t i = 0; i < num_classes_; ++i) {
    // Where the unit may not be, the class is out of the part's, and its sums are not looked at.
    const Nanoseconds time = problem_.classes[i].time[unit];
    if (time != kNever) time_[i] += sign * time;
  }
  for (const std::uint32_t net : problem_.nets[unit]) {
    const Charge before = charge(net);
    inside_[net] += joins ? 1 : ~std::uint32_t{0};
    if (problem_.pins[net][0] == unit) source_inside_[net] = joins ? 1 : 0;
    const Charge after = charge(net);
    if (before.cut != after.cut) {
      const Nanoseconds cut = after.cut ? 1 : -1;
      for (std::size_t i = 0; i < num_classes_; ++i) {
        cut_[i] += cut * problem_.classes[i].weight[net];
      }
    }
    if (before.arrives != after.arrives) {
      const Nanoseconds arrives = after.arrives ? 1 : -1;
      for (std::size_t i = 0; i < num_classes_; ++i) {
        arriving_[i] += arrives * problem_.classes[i].weight[net];
      }
    }
  }
}

Nanoseconds SplitTable::load(std::size_t device_class) const {
  if (problem_.rule == SplitRule::kAdd) return time_[device_class] + cut_[device_class];
  return std::max({time_[device_class], cut_[device_class], arriving_[device_class]});
}

void SplitTable::relax(std::uint32_t first, std::uint32_t last, const Part& part) {
  for (std::uint32_t i = 0; i < num_classes_; ++i) {
    if ((part.classes >> i & 1) == 0) continue;
    const Nanoseconds here = load(i);
    if (here >= limit_) continue;
    for (const std::size_t state : live_) {
      if (tally_.left(state, i) == 0) continue;
      const std::size_t next = state + tally_.stride(i);
      const Nanoseconds largest = std::max(here, entry(first, state).load);
      Entry& known = entry(last, next);
      if (largest >= known.load || !within_reach(last, next)) continue;
      known = {largest, first, i};
      reached_[last] = 1;
    }
  }
}

ContiguousSplit SplitTable::trace(std::size_t state) {
  ContiguousSplit result;
  result.device_of.assign(problem_.num_units(), kNoDevice);
  std::uint32_t ideal = lattice_.size() - 1;
  result.load = entry(ideal, state).load;
  while (ideal != 0) {
    const Entry& last = entry(ideal, state);
    const std::size_t number = tally_.taken(state, last.device_class) - 1;
    const DeviceId device = problem_.classes[last.device_class].devices[number];
    // What is in the smaller ideal is given its own device later.
    for (const std::uint32_t unit : lattice_.elements(ideal)) result.device_of[unit] = device;
    state -= tally_.stride(last.device_class);
    ideal = last.before;
  }
  return result;
}

}  // namespace

SplitResult best_contiguous_split(const SplitProblem& problem, const IdealLattice& lattice,
                                  const SplitLimits& limits) {
  EMPLACE_CHECK(lattice.num_elements() == problem.num_units());
  SplitResult result;
  if (problem.num_units() == 0) {
    result.best.emplace();
    return result;
  }
  if (problem.classes.size() > 64) return {std::nullopt, false, 0};
  SplitTable table(problem, lattice, limits);
  if (table.too_large()) return {std::nullopt, false, 0};
  const Nanoseconds lower = table.lower_bound();
  const Nanoseconds most = std::min(limits.below, table.upper_bound() + 1);
  double gap = kFirstGap;
  for (;; gap *= kGapGrowth) {
    const double wide = static_cast<double>(std::max<Nanoseconds>(lower, 1)) * (1 + gap) + 1;
    const bool last = wide >= static_cast<double>(most);
    const Nanoseconds limit = last ? most : static_cast<Nanoseconds>(wide);
    result.best = table.solve(limit);
    result.finished = !table.stopped();
    result.parts = table.parts();
    if (result.best || last || !result.finished) return result;
  }
}

}  // namespace emplace
