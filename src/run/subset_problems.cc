#include "run/subset_problems.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

#include "bound/lower_bound.h"
#include "run/device_subsets.h"

namespace emplace {
namespace {

std::optional<std::string> why_hopeless(const Problem& problem, const Objective& objective) {
  return why_nothing_fits(problem,
                          objective.match([](const StepTime&) { return MemoryRule::kStep; },
                                          [](const StreamPeriod&) { return MemoryRule::kStream; }));
}

}  // namespace

SubsetProblems::SubsetProblems(const std::shared_ptr<const Problem>& problem,
                               const Objective& objective, int most_devices,
                               std::vector<Solution> starts)
    : whole_(std::make_shared<const Simulator>(problem)),
      objective_(objective),
      most_devices_(most_devices) {
  problem->cluster().require_linked();
  value_starts(std::move(starts));
  if (most_devices > 0 && most_devices < problem->num_devices()) {
    split(problem, static_cast<DeviceId>(most_devices));
    return;
  }
  DeviceSet all;
  for (DeviceId device = 0; device < problem->num_devices(); ++device) all.push_back(device);
  why_nothing_fits_ = why_hopeless(*problem, objective_);
  LowerBound bound = why_nothing_fits_ ? LowerBound{} : lower_bound(*problem, objective_);
  subsets_.push_back({whole_, std::move(all), starts_, std::move(bound)});
}

LowerBound SubsetProblems::bound() const {
  if (!complete_ || subsets_.empty()) return {};
  LowerBound lowest = subsets_.front().bound;
  for (const SubsetProblem& subset : subsets_) {
    if (subset.bound.step < lowest.step) lowest = subset.bound;
  }
  return lowest;
}

void SubsetProblems::split(const std::shared_ptr<const Problem>& problem, DeviceId count) {
  const std::string devices_text = fmt::format("{} device{}", count, count == 1 ? "" : "s");
  DeviceSubsets chosen =
      with_context("at most " + devices_text, [&] { return device_subsets(*problem, count); });
  complete_ = chosen.complete;
  if (!starts_.empty()) {
    const DeviceSet used =
        grown_to(*problem, used_devices(*problem, starts_.front().placement), count);
    std::erase(chosen.sets, used);
    chosen.sets.insert(chosen.sets.begin(), used);
  }
  std::vector<SubsetProblem> hopeless;
  for (const DeviceSet& devices : chosen.sets) {
    const auto own = compile_on(problem, devices);
    SubsetProblem subset{
        std::make_shared<const Simulator>(own), devices, {}, lower_bound(*own, objective_)};
    for (const Solution& start : starts_) {
      auto placement = to_subset(start.placement, devices);
      if (!placement) continue;
      subset.starts.push_back({std::move(*placement), start.schedule, start.value, start.origin});
    }
    const auto reason = why_hopeless(*own, objective_);
    if (reason && !why_nothing_fits_) {
      why_nothing_fits_ = fmt::format("on {}: {}", devices_text, *reason);
    }
    (reason ? hopeless : subsets_).push_back(std::move(subset));
  }
  // Sets that were not looked at may hold it.
  if (subsets_.empty() && !complete_) subsets_ = std::move(hopeless);
  if (!subsets_.empty()) why_nothing_fits_.reset();
}

void SubsetProblems::value_starts(std::vector<Solution> starts) {
  for (const Solution& start : starts) {
    const std::size_t used = used_devices(whole_->problem(), start.placement).size();
    if (most_devices_ > 0 && used > static_cast<std::size_t>(most_devices_)) {
      fail_option("{}: uses {} devices; at most {} were asked for", start.origin, used,
                  most_devices_);
    }
  }
  starts_ = PlaceContext(whole_, objective_, std::move(starts)).starts();
  std::stable_sort(starts_.begin(), starts_.end(),
                   [](const Solution& a, const Solution& b) { return a.value < b.value; });
}

}  // namespace emplace
