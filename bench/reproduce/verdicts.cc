#include "reproduce/verdicts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace emplace::bench {

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return "reproduced";
    case Verdict::kNotReproduced:
      return "not reproduced";
    case Verdict::kUnclear:
      return "unclear";
    case Verdict::kNotRun:
      break;
  }
  return "not run";
}

Evidence::Evidence(std::map<std::string, Stage> stages, const RunStore& runs, int seeds,
                   std::optional<std::int64_t> evaluations)
    : stages_(std::move(stages)), runs_(runs), seeds_(seeds), evaluations_(evaluations) {}

bool Evidence::has(const std::string& name, const std::string& placer) const {
  for (int seed = 1; seed <= seeds_; ++seed) {
    if (runs_.find(run_key(workload(name), placer, seed, evaluations_)) == nullptr) return false;
  }
  return true;
}

bool Evidence::has(const Statement& statement) const {
  return std::all_of(statement.workloads.begin(), statement.workloads.end(),
                     [&](const std::string& name) {
                       return has(name, statement.left) && has(name, statement.right);
                     });
}

const LearningRun& Evidence::run(const std::string& name, const std::string& placer,
                                 int seed) const {
  const LearningRun* found = runs_.find(run_key(workload(name), placer, seed, evaluations_));
  EMPLACE_CHECK(found != nullptr);
  return *found;
}

double Evidence::step_time(const std::string& name, const std::string& placer, int seed) const {
  const LearningRun& one = run(name, placer, seed);
  if (!one.fits) return kNothingFits;
  return static_cast<double>(one.step) / static_cast<double>(stage(name).single);
}

std::vector<double> Evidence::step_times(const std::string& name, const std::string& placer) const {
  std::vector<double> times;
  for (int seed = 1; seed <= seeds_; ++seed) times.push_back(step_time(name, placer, seed));
  return times;
}

double Evidence::reached(Measure measure, const std::string& name, const std::string& placer,
                         int seed, double target) const {
  const LearningRun& one = run(name, placer, seed);
  const auto single = static_cast<double>(stage(name).single);
  const auto hit =
      std::find_if(one.history.begin(), one.history.end(), [&](const RunProgress& point) {
        return point.fits && static_cast<double>(point.step) <= target * single;
      });
  const bool never = hit == one.history.end();
  if (measure == Measure::kAgentSeconds) return never ? one.agent_seconds : hit->agent_seconds;
  if (measure == Measure::kMeasuredSeconds) {
    return never ? one.measured_seconds : hit->measured_seconds;
  }
  return static_cast<double>(std::max<std::int64_t>(1, never ? one.evaluations : hit->evaluations));
}

double Evidence::log_ratio(const Statement& statement, const std::string& name, int seed) const {
  if (statement.measure == Measure::kStepTime) {
    return std::log(step_time(name, statement.left, seed) / step_time(name, statement.right, seed));
  }
  const double target = std::max(median_of(step_times(name, statement.left)),
                                 median_of(step_times(name, statement.right)));
  return std::log(reached(statement.measure, name, statement.left, seed, target) /
                  reached(statement.measure, name, statement.right, seed, target));
}

bool Evidence::always_fits(const std::string& name, const std::string& placer) const {
  for (int seed = 1; seed <= seeds_; ++seed) {
    if (!run(name, placer, seed).fits) return false;
  }
  return true;
}

std::optional<MeanInterval> Evidence::ratio(const Statement& statement) const {
  for (const std::string& name : statement.workloads) {
    // The stand-in for "nothing fits" must not decide.
    if (!always_fits(name, statement.left) || !always_fits(name, statement.right)) return {};
  }
  std::vector<double> by_seed;
  for (int seed = 1; seed <= seeds_; ++seed) {
    double sum = 0;
    for (const std::string& name : statement.workloads) sum += log_ratio(statement, name, seed);
    by_seed.push_back(sum / static_cast<double>(statement.workloads.size()));
  }
  return geometric_interval(by_seed);
}

Verdict judge(const Statement& statement, const std::optional<MeanInterval>& measured) {
  if (!measured) return Verdict::kUnclear;
  const MeanInterval& ratio = *measured;
  if (ratio.low >= statement.least && ratio.high < statement.most) return Verdict::kReproduced;
  if (ratio.low >= statement.most || ratio.high < statement.least) return Verdict::kNotReproduced;
  return Verdict::kUnclear;
}

Verdict judge(const std::vector<Verdict>& statements) {
  const auto any = [&](Verdict verdict) {
    return std::find(statements.begin(), statements.end(), verdict) != statements.end();
  };
  for (const Verdict verdict : {Verdict::kNotReproduced, Verdict::kNotRun, Verdict::kUnclear}) {
    if (any(verdict)) return verdict;
  }
  return Verdict::kReproduced;
}

}  // namespace emplace::bench
