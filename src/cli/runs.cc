#include "cli/runs.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "base/error.h"
#include "base/units.h"
#include "cli/progress.h"
#include "placer/scheduler.h"
#include "placers/all.h"

namespace emplace::cli {
namespace {

std::vector<std::string> scheduler_keys(const std::string& text) {
  std::vector<std::string> known{std::string(kOwnSchedule)};
  for (const SchedulerInfo& scheduler : schedulers()) known.push_back(scheduler.key);
  if (text == "all") return known;
  std::vector<std::string> keys = split_specs(text);
  for (const std::string& key : keys) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail_option("unknown scheduler '{}'{}; expected one of: {}, all", key, suggestion(key, known),
                  fmt::join(known, ", "));
    }
  }
  return keys;
}

std::vector<PlacerSpec> placer_specs(const std::string& text) {
  std::vector<PlacerSpec> specs;
  if (text == "all") {
    for (const PlacerInfo* info : all_placers().list()) specs.push_back({info->key, {}});
    return specs;
  }
  for (const std::string& spec : split_specs(text)) {
    specs.push_back(PlacerSpec::parse(spec));
    all_placers().make(specs.back());  // refuse a bad option before the first one runs
  }
  return specs;
}

std::string label(const PlacerRun& run) {
  std::string text = run.placer.to_string();
  if (run.scheduler != kOwnSchedule) text += " + " + run.scheduler;
  return text;
}

}  // namespace

std::vector<PlacerRun> make_runs(const std::string& placers, const std::string& schedulers,
                                 std::uint64_t first_seed, int seeds) {
  std::vector<PlacerRun> runs;
  for (const PlacerSpec& spec : placer_specs(placers)) {
    const int repeats = all_placers().info(spec.key).randomized ? seeds : 1;
    for (const std::string& scheduler : scheduler_keys(schedulers)) {
      for (int i = 0; i < repeats; ++i) {
        runs.push_back({spec, scheduler, first_seed + static_cast<std::uint64_t>(i)});
      }
    }
  }
  return runs;
}

ByObjective::Value ByObjective::value(const RunResult& result) const {
  if (!objective_.throughput()) return {result.evaluation.overflow, result.evaluation.step};
  const ThroughputResult stream = throughput(problem_, result.result.placement, objective_.overlap_kind());
  Value value{0, stream.period};
  for (DeviceId device = 0; device < problem_.num_devices(); ++device) {
    value.overflow += std::max<Bytes>(0, stream.memory[device] - problem_.cluster().device(device).memory);
  }
  return value;
}

std::vector<RunResult> run_all(std::shared_ptr<const Problem> problem, const std::vector<PlacerRun>& runs,
                               const BudgetArguments& budget, const ObjectiveArguments& objective,
                               const Session& session, bool quiet) {
  problem->cluster().require_linked();
  const ByObjective by_objective(*problem, objective);
  std::vector<std::pair<ByObjective::Value, RunResult>> results;
  const Budget whole = budget.make(session);
  Progress progress(quiet || runs.size() == 1);
  for (const PlacerRun& run : runs) {
    if (!results.empty() && whole.spent(0)) break;
    std::string line = fmt::format("[{}/{}] {}", results.size() + 1, runs.size(), label(run));
    if (!results.empty()) {
      const auto& best = *std::min_element(results.begin(), results.end(), [](const auto& a, const auto& b) {
        return a.first < b.first;
      });
      line += fmt::format("   best so far: {} {}{}", label(best.second.run), format_time(best.first.time),
                          best.first.overflow > 0 ? " (does not fit)" : "");
    }
    progress.show(line);
    // Each run has the whole evaluation budget, and what is left of the time.
    Budget own = budget.make(session);
    if (whole.seconds) own.seconds = std::max(0.0, *whole.seconds - whole.elapsed_seconds());
    RunResult result = run_placer(all_placers(), problem, run, own);
    const auto value = by_objective.value(result);
    results.emplace_back(value, std::move(result));
  }
  std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RunResult> sorted;
  for (auto& [value, result] : results) sorted.push_back(std::move(result));
  return sorted;
}

bool refuse_hopeless(const Problem& problem, Session& session) {
  const auto reason = why_nothing_fits(problem);
  if (!reason) return false;
  fmt::print(stderr, "emplace: no placement of '{}' fits: {}\n", problem.graph().name(), *reason);
  session.exit_code = kExitNothingFits;
  return true;
}

}  // namespace emplace::cli
