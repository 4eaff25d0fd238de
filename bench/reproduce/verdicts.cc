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

int Evidence::seeds(const std::string& name, const std::string& placer) const {
  int seeds = 0;
  while (seeds < seeds_ && runs_.find(run_key(workload(name), placer, seeds + 1, evaluations_))) {
    ++seeds;
  }
  return seeds;
}

int Evidence::seeds(const Statement& statement) const {
  int fewest = seeds_;
  for (const std::string& name : statement.workloads) {
    fewest = std::min({fewest, seeds(name, statement.left), seeds(name, statement.right)});
  }
  return fewest;
}

bool Evidence::has(const std::string& name, const std::string& placer) const {
  return enough(seeds(name, placer));
}

bool Evidence::has(const Statement& statement) const {
  return enough(seeds(statement));
}

void Evidence::add_codes(const std::string& name, const std::string& placer, int seeds,
                         std::set<std::string>& codes) const {
  for (int seed = 1; seed <= seeds; ++seed) codes.insert(run(name, placer, seed).origin());
}

std::set<std::string> Evidence::codes(const std::string& name, const std::string& placer) const {
  std::set<std::string> codes;
  add_codes(name, placer, seeds(name, placer), codes);
  return codes;
}

std::set<std::string> Evidence::codes(const Statement& statement) const {
  std::set<std::string> codes;
  for (const std::string& name : statement.workloads) {
    for (const std::string& placer : {statement.left, statement.right}) {
      add_codes(name, placer, seeds(statement), codes);
    }
  }
  return codes;
}

const LearningRun& Evidence::run(const std::string& name, const std::string& placer,
                                 int seed) const {
  const LearningRun* found = runs_.find(run_key(workload(name), placer, seed, evaluations_));
  EMPLACE_CHECK(found != nullptr);
  return *found;
}

double Evidence::step_time(const std::string& name, const std::string& placer, int seed) const {
  const LearningRun& one = run(name, placer, seed);
  return one.fits ? over_single(name, one.step) : kNothingFits;
}

double Evidence::over_single(const std::string& name, Nanoseconds step) const {
  return static_cast<double>(step) / static_cast<double>(stage(name).single);
}

std::vector<double> Evidence::step_times(const std::string& name, const std::string& placer) const {
  return step_times(name, placer, seeds(name, placer));
}

std::vector<double> Evidence::step_times(const std::string& name, const std::string& placer,
                                         int seeds) const {
  std::vector<double> times;
  for (int seed = 1; seed <= seeds; ++seed) times.push_back(step_time(name, placer, seed));
  return times;
}

double Evidence::reached(Measure measure, const std::string& name, const std::string& placer,
                         int seed, double target) const {
  const LearningRun& one = run(name, placer, seed);
  // The same division as the target's, which is one of these step times: a run reaches its own.
  const auto hit =
      std::find_if(one.history.begin(), one.history.end(), [&](const RunProgress& point) {
        return point.fits && over_single(name, point.step) <= target;
      });
  const bool never = hit == one.history.end();
  if (measure == Measure::kAgentSeconds) return never ? one.agent_seconds : hit->agent_seconds;
  if (measure == Measure::kMeasuredSeconds) {
    return never ? one.measured_seconds : hit->measured_seconds;
  }
  return static_cast<double>(std::max<std::int64_t>(1, never ? one.evaluations : hit->evaluations));
}

Evidence::Sides Evidence::measured(const Statement& statement, const std::string& name,
                                   int seeds) const {
  const double target = std::max(median_of(step_times(name, statement.left, seeds)),
                                 median_of(step_times(name, statement.right, seeds)));
  const auto of = [&](const std::string& placer, int seed) {
    return std::log(statement.measure == Measure::kStepTime
                        ? step_time(name, placer, seed)
                        : reached(statement.measure, name, placer, seed, target));
  };
  Sides sides;
  for (int seed = 1; seed <= seeds; ++seed) {
    sides.left.push_back(of(statement.left, seed));
    sides.right.push_back(of(statement.right, seed));
  }
  return sides;
}

bool Evidence::always_fits(const std::string& name, const std::string& placer, int seeds) const {
  for (int seed = 1; seed <= seeds; ++seed) {
    if (!run(name, placer, seed).fits) return false;
  }
  return true;
}

std::optional<Ratio> Evidence::ratio(const Statement& statement) const {
  const int count = seeds(statement);
  const auto models = static_cast<double>(statement.workloads.size());
  std::vector<double> by_seed(static_cast<std::size_t>(count), 0);
  std::vector<double> by_model;
  bool seeds_differ = false;
  for (const std::string& name : statement.workloads) {
    // The stand-in for "nothing fits" must not decide.
    if (!always_fits(name, statement.left, count)) return {};
    if (!always_fits(name, statement.right, count)) return {};
    const Sides sides = measured(statement, name, count);
    for (std::size_t i = 0; i < by_seed.size(); ++i) {
      by_seed[i] += (sides.left[i] - sides.right[i]) / models;
      seeds_differ |= sides.left[i] != sides.left[0] || sides.right[i] != sides.right[0];
    }
    by_model.push_back(sides.left.at(0) - sides.right.at(0));
  }
  if (seeds_differ) return Ratio{geometric_interval(by_seed), Sample::kSeeds};
  return Ratio{geometric_interval(by_model), Sample::kModels};
}

Verdict judge(const Statement& statement, const std::optional<Ratio>& measured) {
  if (!measured) return Verdict::kUnclear;
  const MeanInterval& ratio = measured->interval;
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
