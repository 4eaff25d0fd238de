// What placers run on: the whole problem, or, when only some devices may be used, the problem on
// each of several sets of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <emplace/granularity.h>
#include <emplace/search.h>

#include "sim/objective.h"
#include "sim/simulator.h"

#include "placer/context.h"

#include "run/cpu_use.h"
#include "run/rates.h"
#include "run/subset_problem.h"

namespace emplace {

struct SubsetProblem {
  std::shared_ptr<const Simulator> simulator;
  DeviceSet devices;             // their numbers in the whole problem
  std::vector<Solution> starts;  // in the subset's numbers
  LowerBound bound;              // of placements on these devices that fit
  bool last_resort = false;      // only where nothing fits on those before it
};

// What a placement of the subset costs, by what one of the whole problem does.
Evaluator::Measure measured_on(const SubsetProblem& subset, Evaluator::Measure whole);

class SubsetProblems {
 public:
  // At most `most_devices` may be used; 0: all. Throws an Error when a start uses more, or when no
  // so many devices may run every op.
  SubsetProblems(const std::shared_ptr<const Problem>& problem, const Objective& objective,
                 int most_devices = 0, std::vector<Solution> starts = {},
                 CpuUse cpus = CpuUse::kAlways);

  const std::shared_ptr<const Simulator>& whole() const { return whole_; }
  const std::vector<SubsetProblem>& list() const { return subsets_; }
  int most_devices() const { return most_devices_; }
  // Whether there are CPUs, and the rest is to do without them if it can.
  bool leaves_cpus_out() const { return leaves_cpus_out_; }
  const Objective& objective() const { return objective_; }
  // Best first, in the whole problem's numbers.
  const std::vector<Solution>& starts() const { return starts_; }
  // Whether the lowest of the subsets' bounds holds for every placement that is wanted.
  bool complete() const { return complete_; }
  // Such a bound, known before any search; 0: none.
  LowerBound bound() const;
  // What a step is worth, where that was said.
  const std::optional<StepTerms>& terms() const { return terms_; }
  void set_terms(StepTerms terms) { terms_ = std::move(terms); }
  // What the problem's groups keep whole, where that was said.
  Granularity granularity() const { return granularity_; }
  void set_granularity(Granularity granularity) { granularity_ = granularity; }
  // Why nothing fits, where that is proven before any search.
  const std::optional<std::string>& why_nothing_fits() const { return why_nothing_fits_; }
  // Placements are to be valued by something else than the simulator (PortfolioRequest::measure),
  // to which what is proven of the simulator's values need not apply. Sets of devices that are not
  // listed stay out.
  void forget_proofs();

 private:
  void value_starts(std::vector<Solution> starts);
  void add(const std::shared_ptr<const Problem>& problem, const DeviceSet& usable,
           std::size_t most);
  SubsetProblem subset_of(const std::shared_ptr<const Problem>& problem,
                          const DeviceSet& devices) const;
  void split(const std::shared_ptr<const Problem>& problem, const DeviceSet& usable,
             DeviceId count);

  std::shared_ptr<const Simulator> whole_;
  Objective objective_;
  int most_devices_;
  std::vector<Solution> starts_;
  std::vector<SubsetProblem> subsets_;
  bool complete_ = true;
  bool leaves_cpus_out_ = false;
  std::optional<StepTerms> terms_;
  Granularity granularity_ = Granularity::kOp;
  std::optional<std::string> why_nothing_fits_;
};

}  // namespace emplace
