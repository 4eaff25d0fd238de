// Whether runs bear out what is claimed.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
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
// Fewer seeds say nothing, unless fewer were asked for.
inline constexpr int kFewestSeeds = 3;

// What an interval says the spread of.
enum class Sample { kSeeds, kModels };

// Of the geometric mean over the models.
struct Ratio {
  MeanInterval interval;
  Sample sample = Sample::kSeeds;
};

// All runs of one comparison, of which some placers may have more seeds than others. A statement is
// judged by the seeds that all of its runs have.
class Evidence {
 public:
  // Of at most so many seeds.
  Evidence(std::map<std::string, Stage> stages, const RunStore& runs, int seeds,
           std::optional<std::int64_t> evaluations);

  const Stage& stage(const std::string& workload) const { return stages_.at(workload); }
  // How many there are: from the first on, without a gap.
  int seeds(const std::string& workload, const std::string& placer) const;
  int seeds(const Statement& statement) const;
  // Whether they are enough.
  bool has(const std::string& workload, const std::string& placer) const;
  bool has(const Statement& statement) const;
  const LearningRun& run(const std::string& workload, const std::string& placer, int seed) const;
  // The commits and kernels that the placer's runs, or the statement's, are of.
  std::set<std::string> codes(const std::string& workload, const std::string& placer) const;
  std::set<std::string> codes(const Statement& statement) const;
  std::int64_t evaluations(const std::string& name) const {
    return evaluations_.value_or(workload(name).evaluations);
  }

  // In step times on one device; of all seeds, or of the first ones.
  std::vector<double> step_times(const std::string& workload, const std::string& placer) const;
  std::vector<double> step_times(const std::string& workload, const std::string& placer,
                                 int seeds) const;
  // Of left's measure over right's. The interval is over the seeds; where no seed makes a
  // difference, as of placers without chance, they are one run, and it is over the models
  // (unbounded where there is one). Nothing where some run of either found nothing that fits.
  std::optional<Ratio> ratio(const Statement& statement) const;

 private:
  bool enough(int seeds) const { return seeds >= std::min(kFewestSeeds, seeds_); }
  void add_codes(const std::string& workload, const std::string& placer, int seeds,
                 std::set<std::string>& codes) const;
  bool always_fits(const std::string& name, const std::string& placer, int seeds) const;
  double step_time(const std::string& workload, const std::string& placer, int seed) const;
  double over_single(const std::string& workload, Nanoseconds step) const;
  // How far the run was when it was as good as that, in step times on one device.
  double reached(Measure measure, const std::string& workload, const std::string& placer, int seed,
                 double target) const;
  // The logarithms of what is measured, by seed.
  struct Sides {
    std::vector<double> left;
    std::vector<double> right;
  };
  Sides measured(const Statement& statement, const std::string& workload, int seeds) const;

  std::map<std::string, Stage> stages_;
  const RunStore& runs_;
  int seeds_;
  std::optional<std::int64_t> evaluations_;
};

// Reproduced where the interval is within what is claimed, not where it is outside.
Verdict judge(const Statement& statement, const std::optional<Ratio>& measured);
// Of a claim: the worst of its statements'.
Verdict judge(const std::vector<Verdict>& statements);

}  // namespace emplace::bench
