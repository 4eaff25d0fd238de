#include "cli/runs.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "base/error.h"
#include "base/units.h"

#include "placer/scheduler.h"

#include "placers/all.h"

#include "cli/progress.h"

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
    // Orders of one placement come together, so that it is made once.
    for (int i = 0; i < repeats; ++i) {
      for (const std::string& scheduler : scheduler_keys(schedulers)) {
        runs.push_back({spec, scheduler, first_seed + static_cast<std::uint64_t>(i)});
      }
    }
  }
  return runs;
}

std::vector<RunResult> run_all(const std::shared_ptr<const Simulator>& simulator,
                               const std::vector<PlacerRun>& runs, const BudgetArguments& budget,
                               const ObjectiveArguments& objective, const Session& session) {
  simulator->problem().cluster().require_linked();
  const auto better = [](const RunResult& a, const RunResult& b) {
    return a.evaluation < b.evaluation;
  };
  std::vector<RunResult> results;
  results.reserve(runs.size());
  PlacerSpec failed;
  std::vector<std::string> failures;
  const Budget whole = budget.make(session);
  Progress progress(runs.size() == 1);
  for (const PlacerRun& run : runs) {
    const bool time_is_up = whole.seconds && whole.elapsed_seconds() >= *whole.seconds;
    if (!results.empty() && (time_is_up || session.cancelled)) break;
    std::string line = fmt::format("[{}/{}] {}", results.size() + 1, runs.size(), label(run));
    if (!results.empty()) {
      const RunResult& best = *std::min_element(results.begin(), results.end(), better);
      line += fmt::format("   best so far: {} {}{}", label(best.run),
                          format_time(best.evaluation.step),
                          best.evaluation.fits() ? "" : " (does not fit)");
    }
    progress.show(line);
    const bool same_placement = !results.empty() && run.seed == results.back().run.seed &&
                                run.placer == results.back().run.placer;
    if (run.placer == failed) continue;
    try {
      Evaluator evaluator(simulator, objective.make());
      if (same_placement && run.scheduler != kOwnSchedule) {
        results.push_back(with_scheduler(results.back(), run.scheduler, evaluator));
      } else {
        // Each run has the whole evaluation budget, and what is left of the time.
        Budget own = budget.make(session);
        if (whole.seconds) own.seconds = std::max(0.0, *whole.seconds - whole.elapsed_seconds());
        results.push_back(run_placer(all_placers(), evaluator, run, own));
      }
    } catch (const Error& error) {
      // One of several placers that cannot cope, as with missing links, does not stop the others.
      const bool others = std::any_of(runs.begin(), runs.end(), [&](const PlacerRun& other) {
        return other.placer != run.placer;
      });
      if (!others) throw;
      failed = run.placer;
      failures.push_back(error.what());
    }
  }
  if (results.empty()) fail_input("{}", fmt::join(failures, "; "));
  for (const std::string& failure : failures) fmt::print(stderr, "warning: {}\n", failure);
  std::stable_sort(results.begin(), results.end(), better);
  return results;
}

bool refuse_hopeless(const Problem& problem, const ObjectiveArguments& objective,
                     Session& session) {
  const auto rule = objective.throughput() ? MemoryRule::kStream : MemoryRule::kStep;
  const auto reason = why_nothing_fits(problem, rule);
  if (!reason) return false;
  fmt::print(stderr, "emplace: no placement of '{}' fits: {}\n", problem.graph().name(), *reason);
  session.exit_code = kExitNothingFits;
  return true;
}

}  // namespace emplace::cli
