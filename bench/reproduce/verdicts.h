// Whether runs bear out what is claimed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/statistics.h"
#include "reproduce/claims.h"
#include "reproduce/runs.h"

namespace emplace::bench {

enum class Verdict { kReproduced, kNotReproduced, kUnclear, kNotRun };
std::string to_string(Verdict verdict);

// What a run that finds nothing that fits counts as, in step times on one device.
inline constexpr double kNothingFits = 10;

// All runs of one comparison.
class Evidence {
 public:
  Evidence(std::map<std::string, Stage> stages, const RunStore& runs, int seeds,
           std::optional<std::int64_t> evaluations);

  const Stage& stage(const std::string& workload) const { return stages_.at(workload); }
  // Whether every seed has run.
  bool has(const std::string& workload, const std::string& placer) const;
  bool has(const Statement& statement) const;
  const LearningRun& run(const std::string& workload, const std::string& placer, int seed) const;
  int seeds() const { return seeds_; }
  std::int64_t evaluations(const std::string& name) const {
    return evaluations_.value_or(workload(name).evaluations);
  }

  // In step times on one device; by seed.
  std::vector<double> step_times(const std::string& workload, const std::string& placer) const;
  // Of left's measure over right's, in the geometric mean over the workloads.
  // Nothing where some run of either found nothing that fits.
  std::optional<MeanInterval> ratio(const Statement& statement) const;

 private:
  bool always_fits(const std::string& name, const std::string& placer) const;
  double step_time(const std::string& workload, const std::string& placer, int seed) const;
  // How far the run was when it was as good as that, in step times on one device.
  double reached(Measure measure, const std::string& workload, const std::string& placer, int seed,
                 double target) const;
  double log_ratio(const Statement& statement, const std::string& workload, int seed) const;

  std::map<std::string, Stage> stages_;
  const RunStore& runs_;
  int seeds_;
  std::optional<std::int64_t> evaluations_;
};

// Reproduced where the interval is within what is claimed, not where it is outside.
Verdict judge(const Statement& statement, const std::optional<MeanInterval>& measured);
// Of a claim: the worst of its statements'.
Verdict judge(const std::vector<Verdict>& statements);

}  // namespace emplace::bench
