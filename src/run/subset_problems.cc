#include "run/subset_problems.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

#include "sim/throughput.h"

#include "bound/lower_bound.h"
#include "run/device_subsets.h"

namespace emplace {
namespace {

// Where a stream is simulated, each of its steps needs what a step needs.
std::optional<std::string> why_hopeless(const Problem& problem, const Objective& objective) {
  const bool all_alive = objective.match(
      [](const StepTime&) { return false; },
      [&](const StreamPeriod& stream) { return !stream_is_simulated(problem, stream.overlap); });
  return why_nothing_fits(problem, all_alive ? MemoryRule::kStream : MemoryRule::kStep);
}

}  // namespace

SubsetProblems::SubsetProblems(const std::shared_ptr<const Problem>& problem,
                               const Objective& objective, int most_devices,
                               std::vector<Solution> starts, CpuUse cpus)
    : whole_(std::make_shared<const Simulator>(problem)),
      objective_(objective),
      most_devices_(most_devices) {
  problem->cluster().require_linked();
  value_starts(std::move(starts));
  std::optional<WithoutCpus> accelerators;
  if (cpus != CpuUse::kAlways) accelerators = without_cpus(problem, objective, starts_);
  if (accelerators && cpus == CpuUse::kNever) {
    leaves_cpus_out_ = true;
    add(accelerators->problem, accelerators->devices, static_cast<std::size_t>(most_devices));
    return;
  }
  if (accelerators && why_hopeless(*accelerators->problem, objective_)) accelerators.reset();
  const auto most = static_cast<std::size_t>(most_devices);
  if (accelerators && (accelerators->fits || most == 0)) {
    leaves_cpus_out_ = true;
    add(accelerators->problem, accelerators->devices, most);
    if (accelerators->fits && !why_nothing_fits_) return;
    if (most > 0) {  // so few of them do not hold it
      subsets_.clear();
      why_nothing_fits_.reset();
      leaves_cpus_out_ = false;
      complete_ = true;
    }
  }
  DeviceSet all;
  for (DeviceId device = 0; device < problem->num_devices(); ++device) all.push_back(device);
  add(problem, all, most);
  if (leaves_cpus_out_) subsets_.back().last_resort = true;
}

// `problem` is the one on the `usable` devices, of which at most `most` are to be used; 0: all.
void SubsetProblems::add(const std::shared_ptr<const Problem>& problem, const DeviceSet& usable,
                         std::size_t most) {
  if (most > 0 && most < usable.size()) return split(problem, usable, static_cast<DeviceId>(most));
  why_nothing_fits_ = why_hopeless(*problem, objective_);
  subsets_.push_back(subset_of(problem, usable));
  if (!why_nothing_fits_) subsets_.back().bound = lower_bound(*problem, objective_);
}

SubsetProblem SubsetProblems::subset_of(const std::shared_ptr<const Problem>& problem,
                                        const DeviceSet& devices) const {
  const bool whole = devices.size() == whole_->problem().num_devices();
  SubsetProblem subset{
      .simulator = whole ? whole_ : std::make_shared<const Simulator>(problem),
      .devices = devices,
      .starts = {},
      .bound = {},
  };
  for (const Solution& start : starts_) {
    auto placement = to_subset(start.placement, devices);
    if (!placement) continue;
    subset.starts.push_back({std::move(*placement), start.schedule, start.value, start.origin});
  }
  return subset;
}

LowerBound SubsetProblems::bound() const {
  if (!complete_ || subsets_.empty()) return {};
  LowerBound lowest = subsets_.front().bound;
  for (const SubsetProblem& subset : subsets_) {
    if (subset.bound.step < lowest.step) lowest = subset.bound;
  }
  return lowest;
}

void SubsetProblems::forget_proofs() {
  for (SubsetProblem& subset : subsets_) subset.bound = {};
  if (!subsets_.empty()) why_nothing_fits_.reset();
}

void SubsetProblems::split(const std::shared_ptr<const Problem>& problem, const DeviceSet& usable,
                           DeviceId count) {
  const std::string devices_text = fmt::format("{} device{}", count, count == 1 ? "" : "s");
  DeviceSubsets chosen =
      with_context("at most " + devices_text, [&] { return device_subsets(*problem, count); });
  complete_ = chosen.complete;
  if (!starts_.empty()) {
    const Placement best = *to_subset(starts_.front().placement, usable);
    const DeviceSet used = grown_to(*problem, used_devices(*problem, best), count);
    std::erase(chosen.sets, used);
    chosen.sets.insert(chosen.sets.begin(), used);
  }
  std::vector<SubsetProblem> hopeless;
  for (const DeviceSet& own_devices : chosen.sets) {
    DeviceSet devices;
    for (const DeviceId device : own_devices) devices.push_back(usable[device]);
    const auto own = compile_on(problem, own_devices);
    const auto reason = why_hopeless(*own, objective_);
    if (reason && !why_nothing_fits_) {
      why_nothing_fits_ = fmt::format("on {}: {}", devices_text, *reason);
    }
    auto& list = reason ? hopeless : subsets_;
    list.push_back(subset_of(own, devices));
    list.back().bound = lower_bound(*own, objective_);
  }
  // Sets that were not looked at may hold it.
  if (subsets_.empty() && !complete_) subsets_ = std::move(hopeless);
  if (!subsets_.empty()) why_nothing_fits_.reset();
}

Evaluator::Measure measured_on(const SubsetProblem& subset, Evaluator::Measure whole) {
  return [devices = subset.devices, whole = std::move(whole)](const Placement& placement,
                                                              const ReadyOrder& order) {
    return whole(to_whole(placement, devices), order);
  };
}

void SubsetProblems::value_starts(std::vector<Solution> starts) {
  for (const Solution& start : starts) {
    const std::size_t used = used_devices(whole_->problem(), start.placement).size();
    if (most_devices_ > 0 && used > static_cast<std::size_t>(most_devices_)) {
      fail_option("{}: uses {} devices; at most {} were asked for", start.origin, used,
                  most_devices_);
    }
  }
  Evaluator evaluator(whole_, objective_);
  starts_ = std::move(starts);
  for (Solution& start : starts_) {
    start.value = evaluator.evaluate_exactly(start.placement, start.schedule);
  }
  std::stable_sort(starts_.begin(), starts_.end(),
                   [](const Solution& a, const Solution& b) { return a.value < b.value; });
}

}  // namespace emplace
