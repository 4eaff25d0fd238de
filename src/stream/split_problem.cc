// Units are merged where the dynamic program over their ideals would be too large.
//
// Merging is exact for what it keeps: times and memory are sums, the largest temporary counts, and
// a net costs a part what it cost before, as a set of units is inside or outside as one. So a split
// of merged units is a split of the units with the same load, but the best may be lost.
//
// `Runs` merges neighbours in a given order, two at a time: those first that take little time for
// what they exchange, and hardly ever more than twice the mean. Offers are never taken out of the
// queue: one that no longer describes two runs is recognised by their ends and their length.
// O((units + pins) + units log units). Ours.
#include "stream/split_problem.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/check.h"

#include "stream/bound_classes.h"

namespace emplace {
namespace {

Nanoseconds mean_length(const StreamModel& model, std::uint32_t net) {
  Nanoseconds sum = 0;
  for (std::uint32_t link = 0; link < model.num_link_classes(); ++link) {
    sum += model.length_in_class(net, link);
  }
  return sum / model.num_link_classes();
}

std::vector<Nanoseconds> net_weights(const StreamModel& model, const DeviceClass& devices,
                                     SplitEstimate estimate) {
  std::vector<Nanoseconds> weights = devices.weight;
  if (estimate == SplitEstimate::kTypical) {
    const bool free = model.overlap() == Overlap::kNone && !model.pays(devices.devices[0]);
    for (std::uint32_t net = 0; net < model.num_nets(); ++net) {
      weights[net] = free ? 0 : mean_length(model, net);
    }
  }
  // A device without links has all units or none, whatever a cut would cost.
  std::replace(weights.begin(), weights.end(), kNever, Nanoseconds{0});
  return weights;
}

}  // namespace

bool least_is_exact(const StreamModel& model) {
  return model.overlap() == Overlap::kNone && model.num_link_classes() == 1;
}

SplitProblem make_split_problem(const StreamModel& model, std::span<const DeviceId> devices,
                                SplitEstimate estimate) {
  SplitProblem result;
  const bool channels = model.overlap() == Overlap::kFull && estimate == SplitEstimate::kTypical;
  result.rule = channels ? SplitRule::kMax : SplitRule::kAdd;
  for (std::uint32_t item = 0; item < model.num_items(); ++item) {
    result.memory.push_back(model.memory(item));
    result.temp.push_back(model.temp(item));
    result.nets.push_back(model.nets(item));
  }
  std::vector<std::uint32_t> pins;
  for (std::uint32_t net = 0; net < model.num_nets(); ++net) {
    pins.assign(1, model.source(net));
    pins.insert(pins.end(), model.sinks(net).begin(), model.sinks(net).end());
    result.pins.push_back(pins);
  }
  for (DeviceClass& one : find_device_classes(model)) {
    std::vector<DeviceId> usable;
    std::copy_if(one.devices.begin(), one.devices.end(), std::back_inserter(usable),
                 [&](DeviceId device) {
                   return std::binary_search(devices.begin(), devices.end(), device);
                 });
    if (usable.empty()) continue;
    std::vector<Nanoseconds> weight = net_weights(model, one, estimate);
    result.classes.push_back(
        {std::move(usable), one.capacity, std::move(one.time), std::move(weight)});
  }
  return result;
}

SplitProblem merge_units(const SplitProblem& problem, std::span<const std::uint32_t> merged_of,
                         std::uint32_t num_merged) {
  SplitProblem result;
  result.rule = problem.rule;
  result.memory.assign(num_merged, 0);
  result.temp.assign(num_merged, 0);
  for (const SplitClass& one : problem.classes) {
    result.classes.push_back(
        {one.devices, one.capacity, std::vector<Nanoseconds>(num_merged, 0), {}});
  }
  for (std::uint32_t unit = 0; unit < problem.num_units(); ++unit) {
    const std::uint32_t merged = merged_of[unit];
    result.memory[merged] += problem.memory[unit];
    result.temp[merged] = std::max(result.temp[merged], problem.temp[unit]);
    for (std::size_t i = 0; i < problem.classes.size(); ++i) {
      Nanoseconds& sum = result.classes[i].time[merged];
      sum = std::min(kNever, sum + problem.classes[i].time[unit]);
    }
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> members;
  std::vector<std::uint32_t> seen(num_merged, ~std::uint32_t{0});
  std::vector<std::uint32_t> pins;
  for (std::uint32_t net = 0; net < problem.pins.size(); ++net) {
    pins.clear();
    for (const std::uint32_t unit : problem.pins[net]) {
      if (std::exchange(seen[merged_of[unit]], net) != net) pins.push_back(merged_of[unit]);
    }
    if (pins.size() < 2) continue;
    for (const std::uint32_t unit : pins) {
      members.emplace_back(unit, static_cast<std::uint32_t>(result.pins.size()));
    }
    result.pins.push_back(pins);
    for (std::size_t i = 0; i < problem.classes.size(); ++i) {
      result.classes[i].weight.push_back(problem.classes[i].weight[net]);
    }
  }
  result.nets = Csr<std::uint32_t>::from_pairs(num_merged, members);
  return result;
}

namespace {

// Runs of consecutive units, merged in pairs. Those go first that are short and exchange much.
class Runs {
 public:
  Runs(const SplitProblem& problem, std::span<const std::uint32_t> order, std::uint32_t most)
      : count_(static_cast<std::uint32_t>(order.size())),
        next_(count_ + 1),
        before_(count_ + 1),
        time_(count_, 0),
        across_(count_, 0) {
    std::vector<std::uint32_t> place(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      next_[i] = i + 1;
      before_[i] = i == 0 ? count_ : i - 1;
      place[order[i]] = i;
    }
    Nanoseconds total = 0;
    for (std::uint32_t unit = 0; unit < count_; ++unit) {
      Nanoseconds least = kNever;
      for (const SplitClass& one : problem.classes) least = std::min(least, one.time[unit]);
      time_[place[unit]] = least == kNever ? 0 : least;
      total += time_[place[unit]];
    }
    longest_ = 2 * total / most;
    add_cuts(problem, place);
    for (std::uint32_t i = 0; i + 1 < count_; ++i) offer(i);
  }

  // By place in the order, the number of its run.
  std::vector<std::uint32_t> merge(std::uint32_t most) {
    for (std::uint32_t left = count_; left > most;) {
      const auto [cost, first, second, length] = queue_.top();
      queue_.pop();
      if (next_[first] != second || time_[first] + time_[second] != length) continue;
      time_[first] += time_[second];
      across_[first] = across_[second];
      next_[first] = next_[second];
      before_[next_[first]] = first;
      next_[second] = kGone;
      --left;
      offer(first);
      if (before_[first] != count_) offer(before_[first]);
    }
    std::vector<std::uint32_t> run;
    std::uint32_t number = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (i > 0 && next_[i] != kGone) ++number;
      run.push_back(number);
    }
    return run;
  }

 private:
  static constexpr std::uint32_t kGone = ~std::uint32_t{0};
  static constexpr double kTooLong = 1e9;
  using Offer = std::tuple<double, std::uint32_t, std::uint32_t, Nanoseconds>;

  void add_cuts(const SplitProblem& problem, const std::vector<std::uint32_t>& place) {
    for (std::uint32_t net = 0; net < problem.pins.size(); ++net) {
      std::uint32_t first = count_;
      std::uint32_t last = 0;
      for (const std::uint32_t unit : problem.pins[net]) {
        first = std::min(first, place[unit]);
        last = std::max(last, place[unit]);
      }
      Nanoseconds weight = 0;
      for (const SplitClass& one : problem.classes) weight = std::max(weight, one.weight[net]);
      across_[first] += weight;
      across_[last] -= weight;
    }
    for (std::uint32_t i = 1; i < count_; ++i) across_[i] += across_[i - 1];
  }

  void offer(std::uint32_t first) {
    const std::uint32_t second = next_[first];
    if (second == count_) return;
    const Nanoseconds length = time_[first] + time_[second];
    const double cost = static_cast<double>(length + 1) / static_cast<double>(across_[first] + 1);
    queue_.emplace(length > longest_ ? cost * kTooLong : cost, first, second, length);
  }

  std::uint32_t count_;
  // A run is known by its first place.
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> before_;
  std::vector<Nanoseconds> time_;
  std::vector<Nanoseconds> across_;  // what a cut behind the run cuts
  Nanoseconds longest_ = 0;          // that a run is to be
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> queue_;
};

}  // namespace

std::vector<std::uint32_t> merge_into_runs(const SplitProblem& problem,
                                           std::span<const std::uint32_t> order,
                                           std::uint32_t most) {
  EMPLACE_CHECK(order.size() == problem.num_units() && most > 0);
  const std::vector<std::uint32_t> run = Runs(problem, order, most).merge(most);
  std::vector<std::uint32_t> result(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) result[order[i]] = run[i];
  return result;
}

}  // namespace emplace
