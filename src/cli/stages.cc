#include "cli/stages.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"

#include "run/device_subsets.h"
#include "placer/evaluator.h"

#include "cli/saved_placement.h"

namespace emplace::cli {

void StageArguments::add_to(CLI::App& command) {
  command
      .add_option("--devices", devices,
                  "Use at most this many of the cluster's devices, whichever serve best")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  command
      .add_option("--start", starts,
                  "Placement file to begin from, for placers that search; may be given several "
                  "times")
      ->allow_extra_args(false)
      ->type_name("FILE");
}

namespace {

LowerBound bound_of(const Problem& problem, const ObjectiveArguments& objective) {
  return objective.throughput() ? period_lower_bound(problem) : lower_bound(problem);
}

std::optional<std::string> why_hopeless(const Problem& problem,
                                        const ObjectiveArguments& objective) {
  return why_nothing_fits(problem,
                          objective.throughput() ? MemoryRule::kStream : MemoryRule::kStep);
}

}  // namespace

Stages::Stages(const LoadedProblem& loaded, const StageArguments& arguments,
               const ObjectiveArguments& objective)
    : whole_(std::make_shared<const Simulator>(loaded.problem)) {
  const Problem& problem = *loaded.problem;
  problem.cluster().require_linked();
  read_starts(arguments, objective.make());
  if (arguments.devices > 0 && arguments.devices < problem.num_devices()) {
    split(loaded, static_cast<DeviceId>(arguments.devices), objective);
    return;
  }
  DeviceSet all;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) all.push_back(device);
  why_nothing_fits_ = why_hopeless(problem, objective);
  stages_.push_back({whole_, std::move(all), starts_, bound_of(problem, objective)});
}

void Stages::split(const LoadedProblem& loaded, DeviceId count,
                   const ObjectiveArguments& objective) {
  const Problem& problem = *loaded.problem;
  DeviceSubsets subsets = with_context(fmt::format("--devices {}", count),
                                       [&] { return device_subsets(problem, count); });
  complete_ = subsets.complete;
  if (!starts_.empty()) {
    const DeviceSet used =
        grown_to(problem, used_devices(problem, starts_.front().placement), count);
    std::erase(subsets.sets, used);
    subsets.sets.insert(subsets.sets.begin(), used);
  }
  std::vector<Stage> hopeless;
  for (const DeviceSet& devices : subsets.sets) {
    const auto own = compile_on(loaded.problem, loaded.options, devices);
    Stage stage{std::make_shared<const Simulator>(own), devices, {}, bound_of(*own, objective)};
    for (const Solution& start : starts_) {
      auto placement = to_subset(start.placement, devices);
      if (!placement) continue;
      stage.starts.push_back({std::move(*placement), start.schedule, start.value, start.origin});
    }
    const auto reason = why_hopeless(*own, objective);
    if (reason && !why_nothing_fits_) {
      why_nothing_fits_ = fmt::format("on {} devices: {}", count, *reason);
    }
    (reason ? hopeless : stages_).push_back(std::move(stage));
  }
  // Sets that were not looked at may hold it.
  if (stages_.empty() && !complete_) stages_ = std::move(hopeless);
  if (!stages_.empty()) why_nothing_fits_.reset();
}

void Stages::read_starts(const StageArguments& arguments, const Objective& objective) {
  const Problem& problem = whole_->problem();
  std::vector<Solution> read;
  for (const std::string& path : arguments.starts) {
    PlacementFile file = SavedPlacementArguments{.path = path, .scheduler = {}}.load(problem);
    const std::size_t used = used_devices(problem, file.placement).size();
    if (arguments.devices > 0 && used > static_cast<std::size_t>(arguments.devices)) {
      fail_option("--start {}: uses {} devices; at most {} were asked for", path, used,
                  arguments.devices);
    }
    read.push_back({std::move(file.placement), std::move(file.schedule), {}, path});
  }
  starts_ = Evaluator(whole_, objective, std::move(read)).starts();
  std::stable_sort(starts_.begin(), starts_.end(),
                   [](const Solution& a, const Solution& b) { return a.value < b.value; });
}

}  // namespace emplace::cli
