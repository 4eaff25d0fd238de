// Lowers the simulated overflow of a placement by moves of whole parts.
//
// Why parts: a parameter that ops on two devices read is in the memory of both, so a step of a
// recurrent cell that leaves frees nothing while other steps stay, and a full device has no room
// for a copy of what it reads. A part that is spread over devices may also be gathered on one.
//
// Layers are tried first, then modules, what shares parameters, and units of about the same time.
// Within one way, the parts that keep most on devices that are too full come first, and each is put
// where most of it is and where most room is. A move is kept if less is missing after it. Then
// parts of all these kinds, and single groups, move at random off devices that are too full, and a
// move is kept unless more is missing after it: peaks are of what happens to be there at one time,
// such as the gradients of several steps, and it often takes two moves until less is missing. So
// the overflow never grows. Where it does not get to zero, nothing says that no placement fits.
// Each move that is tried costs an evaluation, each that is kept another.
#include "learn/general/overflow_descent.h"

#include <algorithm>
#include <numeric>

#include "learn/units/coordinates.h"
#include "learn/units/groupings.h"

namespace emplace::learn {
namespace {

using Part = std::vector<GroupId>;

constexpr std::int64_t kSmallUnits = 300;
// Of those with most room, how many a part is put on in turn.
constexpr std::size_t kRoomiest = 2;

std::vector<Part> parts_of(const PartOfGroup& part_of_group) {
  std::vector<Part> parts(1 + *std::max_element(part_of_group.begin(), part_of_group.end()));
  for (GroupId group = 0; group < part_of_group.size(); ++group) {
    parts[part_of_group[group]].push_back(group);
  }
  return parts;
}

class Descent {
 public:
  Descent(const std::vector<double>& kept, std::span<const DeviceId> used, std::int64_t evaluations,
          Environment& environment, Placement placement)
      : kept_(kept),
        used_(used),
        last_(environment.context().evaluations() + evaluations),
        environment_(environment),
        problem_(environment.problem()),
        placement_(std::move(placement)),
        peaks_(problem_.num_devices()) {}

  // Whether there is something to move.
  bool begin() {
    if (done()) return false;
    const SampleOutcome outcome = environment_.evaluate({placement_}).get().front();
    if (!outcome.valid || outcome.fits()) return false;
    overflow_ = outcome.overflow;
    measure();
    return true;
  }

  bool done() const {
    return overflow_ == 0 || environment_.spent() || environment_.affordable(2) < 2 ||
           environment_.context().evaluations() + 2 > last_;
  }

  void move_parts(const std::vector<Part>& parts) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double there = kept_where_full(parts[i]);
      if (there > 0) order.emplace_back(-there, i);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [negative, index] : order) {
      if (done()) break;
      if (kept_where_full(parts[index]) > 0) move(parts[index]);
    }
  }

  // One move at random that leaves no more missing, if it is one: off a device that is too full,
  // what keeps more being likelier.
  void stroll(const std::vector<Part>& parts, Rng& rng) {
    std::vector<double> until;
    double sum = 0;
    for (const Part& part : parts) until.push_back(sum += kept_where_full(part));
    const auto chosen = std::upper_bound(until.begin(), until.end(), rng.uniform() * sum);
    const DeviceId device = used_[rng.below(used_.size())];
    if (chosen == until.end()) return;
    move_to(parts[static_cast<std::size_t>(chosen - until.begin())], device, overflow_);
  }

 private:
  void measure() { environment_.context().evaluator().evaluate(placement_, {}, peaks_); }

  double room(DeviceId device) const {
    const Bytes memory = problem_.cluster().device(device).memory;
    return memory == kUnlimited ? static_cast<double>(kUnlimited)
                                : static_cast<double>(memory) - static_cast<double>(peaks_[device]);
  }
  DeviceId device_of(GroupId group) const { return placement_[problem_.group_ops(group).front()]; }

  double kept_where_full(const Part& part) const {
    double sum = 0;
    for (const GroupId group : part) {
      if (room(device_of(group)) < 0) sum += kept_[group];
    }
    return sum;
  }

  // Where most of it is, if some of it is elsewhere, and where most room is.
  std::vector<DeviceId> targets(const Part& part) const {
    std::vector<double> there(problem_.num_devices());
    for (const GroupId group : part) there[device_of(group)] += kept_[group] + 1;
    std::vector<DeviceId> result(used_.begin(), used_.end());
    std::stable_sort(result.begin(), result.end(),
                     [&](DeviceId a, DeviceId b) { return room(a) > room(b); });
    if (result.size() > kRoomiest) result.resize(kRoomiest);
    const DeviceId home = *std::max_element(
        used_.begin(), used_.end(), [&](DeviceId a, DeviceId b) { return there[a] < there[b]; });
    result.erase(std::remove(result.begin(), result.end(), home), result.end());
    result.insert(result.begin(), home);
    return result;
  }

  bool move(const Part& part) {
    for (const DeviceId device : targets(part)) {
      if (done()) return false;
      if (move_to(part, device, overflow_ - 1)) return true;
    }
    return false;
  }

  // Unless more is missing afterwards than may be.
  bool move_to(const Part& part, DeviceId device, Bytes most_overflow) {
    Placement candidate = placement_;
    for (const GroupId group : part) {
      if (!problem_.allowed(group, device)) continue;
      for (const OpId op : problem_.group_ops(group)) candidate[op] = device;
    }
    if (candidate == placement_) return false;
    const SampleOutcome outcome = environment_.evaluate({candidate}).get().front();
    if (!outcome.valid || outcome.overflow > most_overflow) return false;
    placement_ = std::move(candidate);
    overflow_ = outcome.overflow;
    if (overflow_ > 0) measure();
    return true;
  }

  const std::vector<double>& kept_;
  std::span<const DeviceId> used_;
  std::int64_t last_;
  Environment& environment_;
  const Problem& problem_;
  Placement placement_;
  Bytes overflow_ = 1;
  std::vector<Bytes> peaks_;
};

}  // namespace

OverflowDescent::OverflowDescent(const Problem& problem) : kept_(problem.num_groups()) {
  const UnitGraph groups = group_by_colocation(problem);
  const std::vector<double> kept = kept_bytes(groups);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    kept_[group] = kept[groups.unit_of_group(group)];
  }
  std::vector<PartOfGroup> ways = whole_modules(problem);
  std::reverse(ways.begin(), ways.end());
  ways.push_back(parameter_sharers(problem));
  const UnitGraph units = group_to_size(problem, kSmallUnits);
  PartOfGroup unit_of_group;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    unit_of_group.push_back(units.unit_of_group(group));
  }
  ways.push_back(std::move(unit_of_group));
  ways.emplace_back(problem.num_groups());
  std::iota(ways.back().begin(), ways.back().end(), 0U);
  for (const PartOfGroup& way : ways) ways_.push_back(parts_of(way));
}

void OverflowDescent::operator()(Placement placement, std::span<const DeviceId> used,
                                 std::int64_t evaluations, Environment& environment,
                                 Rng rng) const {
  Descent descent(kept_, used, evaluations, environment, std::move(placement));
  if (!descent.begin()) return;
  for (std::size_t way = 0; way + 1 < ways_.size(); ++way) descent.move_parts(ways_[way]);
  for (std::int64_t i = 0; i < evaluations && !descent.done(); ++i) {
    descent.stroll(ways_[rng.below(ways_.size())], rng);
  }
}

}  // namespace emplace::learn
