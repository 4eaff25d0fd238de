#include "cli/runs.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

#include "placer/scheduler.h"

#include "placers/all.h"

#include "cli/board.h"
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

std::vector<MethodSpec> placer_specs(const std::string& text) {
  std::vector<MethodSpec> specs;
  if (text == "all") {
    for (const MethodInfo* info : all_placers().list()) specs.push_back({info->key, {}});
    return specs;
  }
  for (const std::string& spec : split_specs(text)) {
    specs.push_back(MethodSpec::parse(spec));
    all_placers().make(specs.back());  // refuse a bad option before the first one runs
  }
  return specs;
}

bool better(const RunResult& a, const RunResult& b) {
  return a.evaluation < b.evaluation;
}

// Runs one placer after another on every stage.
class Runner {
 public:
  Runner(const Stages& stages, const std::vector<PlacerRun>& runs, const BudgetArguments& budget,
         const LearningArguments& learning, TimeFor time_for, const Objective& objective,
         const Session& session)
      : stages_(stages),
        runs_(runs),
        budget_(budget),
        learning_(learning),
        time_for_(time_for),
        objective_(objective),
        session_(session),
        whole_budget_(budget.make(session).or_default()),
        board_(runs.size(), stages),
        files_(open_learning_files(learning, runs, time_for == TimeFor::kEachRun)) {}

  std::vector<RunResult> run() {
    const Progress progress([this] { return board_.line(); });
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const bool time_is_up =
          time_for_ == TimeFor::kAllRuns && !budget_.time.empty() && time_left() <= 0;
      if (!results_.empty() && (time_is_up || session_.cancelled)) break;
      if (runs_[i].placer == failed_) continue;
      try {
        results_.push_back(run_one(i));
        board_.note(results_.back().evaluation);
        board_.raise(results_.back().bound.step);
      } catch (const Error& error) {
        // One of several placers that cannot cope, as with missing links, does not stop the others.
        const bool others = std::any_of(runs_.begin(), runs_.end(), [&](const PlacerRun& other) {
          return other.placer != runs_[i].placer;
        });
        // Nor does a checkpoint that is not this run's pass for one that was gone on from.
        const bool resumed = learning_.resume && learns(runs_[i]);
        if (!others || resumed) throw;
        failed_ = runs_[i].placer;
        failures_.push_back(error.what());
      }
    }
    return std::move(results_);
  }

  const std::vector<std::string>& failures() const { return failures_; }

 private:
  double time_left() const {
    return whole_budget_.seconds ? *whole_budget_.seconds - whole_budget_.elapsed_seconds() : 1;
  }

  // The placement of the run before, in another order.
  bool reorders(std::size_t index) const {
    return !results_.empty() && runs_[index].scheduler != kOwnSchedule &&
           runs_[index].seed == results_.back().run.seed &&
           runs_[index].placer == results_.back().run.placer;
  }

  RunResult run_one(std::size_t index) {
    if (reorders(index)) {
      Evaluator evaluator(stages_.whole(), objective_);
      return with_scheduler(results_.back(), runs_[index].scheduler, evaluator);
    }
    std::optional<RunResult> best;
    LowerBound lowest;
    std::optional<Error> failure;
    std::int64_t evaluations = 0;
    double seconds = 0;
    for (std::size_t i = 0; i < stages_.list().size(); ++i) {
      if (best && session_.cancelled) {
        lowest.step = 0;
        break;
      }
      try {
        RunResult result = run_on(stages_.list()[i], index, i);
        evaluations += result.evaluations;
        seconds += result.seconds;
        if (i == 0 || result.bound.step < lowest.step) lowest = result.bound;
        if (!best || better(result, *best)) best = std::move(result);
      } catch (const Error& error) {
        if (stages_.list().size() == 1) throw;
        failure = error;
        lowest = {};
      }
    }
    if (!best) throw *failure;
    best->bound = stages_.complete() && !failure ? lowest : LowerBound{};
    best->evaluations = evaluations;
    best->seconds = seconds;
    return std::move(*best);
  }

  RunResult run_on(const Stage& stage, std::size_t index, std::size_t stage_index) {
    Evaluator evaluator(stage.simulator, objective_, stage.starts);
    const Budget own = share(index, stages_.list().size() - stage_index);
    board_.begin(index + 1, runs_[index], evaluator, own);
    const struct End {
      Board& board;
      ~End() { board.end(); }
    } end{board_};
    LearningFiles* files = files_[index].get();
    if (files != nullptr) {
      files->attach(evaluator.training(),
                    [this](const TrainingPoint& point) { board_.learned(point); });
    }
    RunResult result = run_placer(all_placers(), evaluator, runs_[index], own);
    result.result.placement = to_whole(result.result.placement, stage.devices);
    if (stage.bound.step > result.bound.step) result.bound = stage.bound;
    if (files != nullptr && files->failure()) failures_.push_back(*files->failure());
    return result;
  }

  // A run's stages have equal parts of its budget; a part of the time that one leaves is for the
  // others.
  Budget share(std::size_t index, std::size_t stages_left) const {
    Budget own = budget_.make(session_).or_default();
    const std::size_t num_stages = stages_.list().size();
    if (own.evaluations && num_stages > 1) {
      const auto parts = static_cast<std::int64_t>(num_stages);
      own.evaluations = std::max<std::int64_t>(1, *own.evaluations / parts);
    }
    if (!own.seconds) return own;
    if (time_for_ == TimeFor::kEachRun) {
      own.seconds = *own.seconds / static_cast<double>(num_stages);
    } else {
      const std::size_t parts = (placements_from(index) - 1) * num_stages + stages_left;
      own.seconds = std::max(0.0, time_left()) / static_cast<double>(parts);
    }
    return own;
  }

  std::size_t placements_from(std::size_t index) const {
    std::size_t placements = 1;
    for (std::size_t i = index + 1; i < runs_.size(); ++i) {
      const bool other =
          runs_[i].placer != runs_[i - 1].placer || runs_[i].seed != runs_[i - 1].seed;
      placements += other ? 1 : 0;
    }
    return placements;
  }

  const Stages& stages_;
  const std::vector<PlacerRun>& runs_;
  const BudgetArguments& budget_;
  const LearningArguments& learning_;
  TimeFor time_for_;
  Objective objective_;
  const Session& session_;
  Budget whole_budget_;
  Board board_;
  std::vector<std::unique_ptr<LearningFiles>> files_;  // by run
  std::vector<RunResult> results_;
  MethodSpec failed_;
  std::vector<std::string> failures_;
};

}  // namespace

std::vector<PlacerRun> make_runs(const std::string& placers, const std::string& schedulers,
                                 std::uint64_t first_seed, int seeds) {
  std::vector<PlacerRun> runs;
  for (const MethodSpec& spec : placer_specs(placers)) {
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

std::vector<RunResult> run_all(const Stages& stages, const std::vector<PlacerRun>& runs,
                               const BudgetArguments& budget, const LearningArguments& learning,
                               TimeFor time_for, const ObjectiveArguments& objective,
                               const Session& session) {
  learning.check(runs, stages);
  Runner runner(stages, runs, budget, learning, time_for, objective.make(), session);
  std::vector<RunResult> results = runner.run();
  if (results.empty()) fail_input("{}", fmt::join(runner.failures(), "; "));
  for (const std::string& failure : runner.failures()) {
    fmt::print(stderr, "warning: {}\n", failure);
  }
  std::stable_sort(results.begin(), results.end(), better);
  return results;
}

LowerBound proven_bound(const std::vector<RunResult>& results) {
  LowerBound highest;
  for (const RunResult& result : results) {
    if (result.bound.step > highest.step) highest = result.bound;
  }
  return highest;
}

bool refuse_hopeless(const Stages& stages, Session& session) {
  if (!stages.why_nothing_fits()) return false;
  fmt::print(stderr, "emplace: no placement of '{}' fits: {}\n",
             stages.whole()->problem().graph().name(), *stages.why_nothing_fits());
  session.exit_code = kExitNothingFits;
  return true;
}

std::string hopeless_json(const Stages& stages) {
  nlohmann::ordered_json json;
  json["fits"] = false;
  json["reason"] = *stages.why_nothing_fits();
  return json.dump(2) + "\n";
}

}  // namespace emplace::cli
