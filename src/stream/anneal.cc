// Moves of one item and swaps of two, half of each. Half of the moves go to a device on which the
// item has a neighbour, half of the swaps are with an item that takes about as long. The Metropolis
// rule compares the rise in energy with -T ln u, taken from a table.
//
// Invariants: energy_ is every resource's term for the present load and scale; loaded_ counts the
// resources whose load is at least the best period, so that an assignment is better exactly when it
// becomes 0, without looking for the maximum after every move. The best assignment is brought up to
// date from a list of moves, so that no improvement copies all of it.
//
// The scale follows the best period, as x^(2^p) tells loads apart only near 1. Energies are
// floating point and decide which moves are made; values are integers and decide what is kept. A
// proposal costs one probe (state.cc). No guarantee of quality.
#include "stream/anneal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "stream/state.h"

namespace emplace {
namespace {

// x^(2^log2_power), continued linearly where it gets so large that it would swallow the others'
// changes, and so small that multiplying gets slow.
class Power {
 public:
  explicit Power(int log2_power) : log2_power_(log2_power) {
    const double power = std::ldexp(1.0, log2_power);
    high_ = std::pow(kHighest, 1 / power);
    high_slope_ = kHighest * power / high_;
    low_ = std::pow(kLowest, 1 / power);
  }

  double operator()(double x) const {
    if (x >= high_) return kHighest + (x - high_) * high_slope_;
    if (x <= low_) return kLowest * x;
    for (int i = 0; i < log2_power_; ++i) x *= x;
    return x;
  }

 private:
  static constexpr double kHighest = 1e12;
  static constexpr double kLowest = 1e-30;
  int log2_power_;
  double high_;
  double high_slope_;
  double low_;
};

// -ln u for a uniform u.
class Exponentials {
 public:
  Exponentials() {
    for (std::size_t i = 0; i < kSize; ++i) {
      values_[i] = -std::log((static_cast<double>(i) + 0.5) / kSize);
    }
  }
  double operator[](std::uint64_t random) const { return values_[random % kSize]; }

 private:
  static constexpr std::size_t kSize = 4096;
  std::array<double, kSize> values_;
};

const Exponentials& exponentials() {
  static const Exponentials table;
  return table;
}

StreamValue value_of(const StreamState& state) {
  return {state.missing_links(), state.overflow(), state.period()};
}

// The best assignment met, without copying it at every improvement: the moves since are kept, and
// made there too when the next one comes.
class BestKeeper {
 public:
  explicit BestKeeper(const std::vector<DeviceId>& device_of) : best_(device_of) {}

  void moved(std::uint32_t item, DeviceId to) {
    if (since_.size() < best_.size()) {
      since_.emplace_back(item, to);
    } else {
      lost_ = true;
    }
  }
  void keep(const StreamState& state) {
    if (lost_) {
      best_ = state.assignment();
    } else {
      for (const auto& [item, device] : since_) best_[item] = device;
    }
    since_.clear();
    lost_ = false;
  }
  std::vector<DeviceId> take() { return std::move(best_); }

 private:
  std::vector<DeviceId> best_;
  std::vector<std::pair<std::uint32_t, DeviceId>> since_;
  bool lost_ = false;
};

class Annealing {
 public:
  Annealing(const StreamLevel& level, const AnnealPlan& plan, Rng& rng,
            const std::vector<DeviceId>& device_of)
      : level_(level),
        plan_(plan),
        rng_(rng),
        state_(level, device_of),
        power_(plan.log2_power),
        keeper_(device_of),
        best_(value_of(state_)),
        constrained_(!state_.memory_is_ample() || !level.devices().all_linked) {
    energy_.resize(level.devices().num_resources);
    double memory = 1;
    for (std::uint32_t item = 0; item < level.num_items(); ++item) {
      memory += static_cast<double>(level.memory(item));
    }
    overflow_slope_ = plan.violation_energy * level.devices().count / memory;
    rescale();
    by_time_.resize(level.num_items());
    rank_.resize(level.num_items());
    std::iota(by_time_.begin(), by_time_.end(), 0U);
    std::stable_sort(by_time_.begin(), by_time_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return level.least_time(a) < level.least_time(b);
    });
    for (std::uint32_t i = 0; i < by_time_.size(); ++i) rank_[by_time_[i]] = i;
  }

  StreamValue run(const StopCheck& stop) {
    double temperature = plan_.start_temperature;
    const auto rounds = static_cast<double>(std::max<std::int64_t>(1, plan_.moves / kRound));
    const double cooling = std::pow(plan_.end_temperature / plan_.start_temperature, 1 / rounds);
    std::int64_t since_asking = 0;
    for (std::int64_t made = 0; made < plan_.moves && !done(); made += kRound) {
      const std::int64_t count = std::min(kRound, plan_.moves - made);
      for (std::int64_t i = 0; i < count; ++i) propose(temperature);
      temperature *= cooling;
      since_asking += count;
      if (since_asking < kMovesBetweenAsking) continue;
      if (stop(since_asking)) return best_;
      since_asking = 0;
    }
    stop(since_asking);
    return best_;
  }

  std::vector<DeviceId> take() { return keeper_.take(); }

 private:
  static constexpr std::int64_t kRound = 64;
  // A violation is a wall at low temperatures, however small it is.
  static constexpr double kViolationStep = 1;
  static constexpr std::uint64_t kNearby = 8;  // ranks

  bool done() const { return best_.period <= plan_.enough && fits(); }

  double load_energy(Nanoseconds load) const { return power_(static_cast<double>(load) * scale_); }

  double overflow_energy(Bytes overflow) const {
    if (overflow == 0) return 0;
    return kViolationStep + static_cast<double>(overflow) * overflow_slope_;
  }

  bool fits() const { return best_.overflow == 0 && best_.missing_links == 0; }

  // More than any load can be.
  double all_work() const {
    Nanoseconds sum = 0;
    for (std::uint32_t item = 0; item < level_.num_items(); ++item) {
      Nanoseconds longest = 0;
      for (const DeviceId device : level_.allowed(item)) {
        longest = std::max(longest, level_.time(item, device));
      }
      sum += longest;
    }
    double result = static_cast<double>(sum);
    for (std::uint32_t net = 0; net < level_.num_nets(); ++net) {
      result += static_cast<double>(level_.mean_length(net)) *
                static_cast<double>(level_.pins(net).size()) * level_.devices().num_link_classes;
    }
    return result;
  }

  void rescale() {
    const bool loads_count = fits() || !plan_.fit_first;
    scale_ = 1 / std::max(1.0, loads_count ? static_cast<double>(best_.period) : all_work());
    for (std::uint32_t resource = 0; resource < energy_.size(); ++resource) {
      energy_[resource] = load_energy(state_.load(resource));
    }
    count_loaded();
  }

  void count_loaded() {
    loaded_ = 0;
    for (const Nanoseconds load : state_.loads()) loaded_ += load >= best_.period ? 1 : 0;
  }

  DeviceId choose_device(std::uint32_t item, std::uint64_t random) {
    const auto nets = level_.nets(item);
    if ((random & 2) == 0 || nets.empty()) {
      const auto devices = level_.allowed(item);
      return devices[((random >> 32) * devices.size()) >> 32];
    }
    const std::uint32_t net = nets[((random >> 40) * nets.size()) >> 24];
    const auto pins = level_.pins(net);
    const std::uint32_t pin = pins[(((random >> 16) & 0xffffff) * pins.size()) >> 24];
    const DeviceId device = state_.device_of(pin);
    return allowed(item, device) ? device : state_.device_of(item);
  }

  bool allowed(std::uint32_t item, DeviceId device) const {
    if (level_.set(item) == 0) return true;
    const auto devices = level_.allowed(item);
    return std::binary_search(devices.begin(), devices.end(), device);
  }

  void propose(double temperature) {
    const auto item = static_cast<std::uint32_t>(rng_.below(level_.num_items()));
    const std::uint64_t random = rng_.next();
    if ((random & 1) == 0) {
      propose_move(item, random, temperature);
    } else {
      propose_swap(item, random, temperature);
    }
  }

  void propose_move(std::uint32_t item, std::uint64_t random, double temperature) {
    const DeviceId to = choose_device(item, random);
    if (to == state_.device_of(item)) return;
    const auto changes = state_.probe(item, to);
    double rise = energy_rise(changes);
    if (constrained_) rise += missing_rise() + overflow_rise(item, to);
    if (rise > temperature * exponentials_[random >> 2]) return;
    note(changes);
    state_.move(item, to);
    keeper_.moved(item, to);
    compare_with_best();
  }

  void propose_swap(std::uint32_t a, std::uint64_t random, double temperature) {
    const std::uint32_t b = choose_partner(a, random);
    const DeviceId x = state_.device_of(a);
    const DeviceId y = state_.device_of(b);
    if (x == y || !allowed(a, y) || !allowed(b, x)) return;
    const auto changes = state_.probe_swap(a, b);
    double rise = energy_rise(changes);
    if (constrained_) rise += missing_rise() + swap_overflow_rise(a, b);
    if (rise > temperature * exponentials_[random >> 2]) return;
    note(changes);
    state_.swap(a, b);
    keeper_.moved(a, y);
    keeper_.moved(b, x);
    compare_with_best();
  }

  // Any item, or one that takes about as long: loads then stay balanced.
  std::uint32_t choose_partner(std::uint32_t item, std::uint64_t random) const {
    const std::uint32_t items = level_.num_items();
    if ((random & 2) == 0) return static_cast<std::uint32_t>(((random >> 32) * items) >> 32);
    const auto step = static_cast<std::uint32_t>((random >> 32) % kNearby) + 1;
    const std::uint32_t rank = rank_[item];
    const bool longer = (random >> 60 & 1) != 0;
    if (longer) return rank + step < items ? by_time_[rank + step] : item;
    return rank >= step ? by_time_[rank - step] : item;
  }

  double energy_rise(std::span<const StreamState::Change> changes) const {
    double rise = 0;
    for (const StreamState::Change& change : changes) {
      rise += load_energy(change.load) - energy_[change.resource];
    }
    return rise;
  }

  double missing_rise() const {
    return (kViolationStep + plan_.violation_energy) *
           static_cast<double>(state_.probed_missing_links() - state_.missing_links());
  }

  double overflow_rise(std::uint32_t item, DeviceId to) const {
    if (state_.memory_is_ample()) return 0;
    const DeviceId from = state_.device_of(item);
    const double rise =
        overflow_energy(state_.overflow_with(item, to)) - overflow_energy(state_.overflow(to));
    if (state_.overflow(from) == 0) return rise;
    return rise + overflow_energy(state_.overflow_without(item)) -
           overflow_energy(state_.overflow(from));
  }

  double swap_overflow_rise(std::uint32_t a, std::uint32_t b) const {
    if (state_.memory_is_ample()) return 0;
    const DeviceId x = state_.device_of(a);
    const DeviceId y = state_.device_of(b);
    return overflow_energy(state_.overflow_swapped(a, b)) +
           overflow_energy(state_.overflow_swapped(b, a)) - overflow_energy(state_.overflow(x)) -
           overflow_energy(state_.overflow(y));
  }

  // Before the state changes.
  void note(std::span<const StreamState::Change> changes) {
    for (const StreamState::Change& change : changes) {
      energy_[change.resource] = load_energy(change.load);
      loaded_ += static_cast<int>(change.load >= best_.period) -
                 static_cast<int>(state_.load(change.resource) >= best_.period);
    }
  }

  void compare_with_best() {
    const bool as_valid = !constrained_ || (state_.missing_links() == best_.missing_links &&
                                            state_.overflow() == best_.overflow);
    if (as_valid ? loaded_ == 0 : more_valid()) improve();
  }

  bool more_valid() const {
    if (state_.missing_links() != best_.missing_links) {
      return state_.missing_links() < best_.missing_links;
    }
    return state_.overflow() < best_.overflow;
  }

  void improve() {
    const bool fitted = fits();
    best_ = value_of(state_);
    keeper_.keep(state_);
    count_loaded();
    if (plan_.fit_first && !fitted) {
      if (fits()) rescale();
      return;
    }
    // A power that the loads have fallen far below would see no difference between them.
    const double fall = 1 - static_cast<double>(best_.period) * scale_;
    if (std::abs(std::ldexp(fall, plan_.log2_power)) > kRescaleAt) rescale();
  }

  static constexpr double kRescaleAt = 0.1;

  const StreamLevel& level_;
  const AnnealPlan& plan_;
  Rng& rng_;
  StreamState state_;
  Power power_;
  BestKeeper keeper_;
  StreamValue best_;
  bool constrained_;
  const Exponentials& exponentials_ = exponentials();
  double scale_ = 1;
  std::vector<std::uint32_t> by_time_;  // items, ascending
  std::vector<std::uint32_t> rank_;     // by item, its place in by_time_
  std::vector<double> energy_;          // by resource
  double overflow_slope_ = 0;
  int loaded_ = 0;  // resources at or above the best period
};

}  // namespace

StreamValue stream_value(const StreamLevel& level, const std::vector<DeviceId>& device_of) {
  return value_of(StreamState(level, device_of));
}

StreamValue anneal(const StreamLevel& level, const AnnealPlan& plan, Rng& rng,
                   const StopCheck& stop, std::vector<DeviceId>& device_of) {
  Annealing annealing(level, plan, rng, device_of);
  const StreamValue value = annealing.run(stop);
  device_of = annealing.take();
  return value;
}

}  // namespace emplace
