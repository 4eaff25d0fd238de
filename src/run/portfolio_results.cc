// What is made of a portfolio's results.
#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"

#include "placers/all.h"

#include "run/portfolio.h"

namespace emplace {

LowerBound PortfolioResult::proven_bound() const {
  LowerBound highest;
  for (const RunResult& result : results) {
    if (result.bound.step > highest.step) highest = result.bound;
  }
  return highest;
}

void keep_best_orders(std::vector<RunResult>& results) {
  std::set<std::pair<std::string, std::uint64_t>> seen;
  std::erase_if(results, [&](const RunResult& result) {
    return !seen.emplace(result.run.placer.to_string(), result.run.seed).second;
  });
}

namespace {

bool has_ops_on_cpus(const SubsetProblems& problems, const RunResult& run) {
  const Problem& problem = problems.whole()->problem();
  const DeviceSet used = used_devices(problem, run.result.placement);
  return std::any_of(used.begin(), used.end(),
                     [&](DeviceId device) { return problem.cluster().is_cpu(device); });
}

}  // namespace

Assessor assessor_of(const SubsetProblems& problems, const PortfolioResult& result) {
  // Where some runs needed a CPU, what others proved without one does not hold for them.
  const auto on_cpu = [&](const RunResult& run) { return has_ops_on_cpus(problems, run); };
  const bool mixed = problems.leaves_cpus_out() &&
                     std::any_of(result.results.begin(), result.results.end(), on_cpu);
  const LowerBound proven = mixed ? LowerBound() : result.proven_bound();
  const LowerBound known = problems.bound();
  return {problems.whole(), problems.objective(), proven.step > known.step ? proven : known,
          problems.terms()};
}

Assessment assess(const Assessor& assessor, const SubsetProblems& problems,
                  const RunResult& result) {
  Assessment assessment = assessor.assess(result.result.placement, result.result.schedule);
  assessment.most_devices = problems.most_devices();
  assessment.granularity = problems.granularity();
  assessment.leaves_cpus_out = problems.leaves_cpus_out() && !has_ops_on_cpus(problems, result);
  return assessment;
}

std::vector<RunResult> quick_splits(const std::shared_ptr<const Simulator>& simulator,
                                    const Objective& objective, const std::string& scheduler) {
  constexpr OpId kTooManyOps = 200'000;
  const Problem& problem = simulator->problem();
  std::vector<RunResult> found;
  if (problem.num_devices() < 2 || problem.num_ops() > kTooManyOps) return found;
  for (const char* key : {"expert", "metis", "heft"}) {
    try {
      PlaceContext context(simulator, objective);
      const PlacerRun run{.placer = {key, {}}, .scheduler = scheduler};
      found.push_back(run_placer(all_placers(), context, run, {}));
    } catch (const Error&) {
      // Not on this cluster, which is no news here.
    }
  }
  return found;
}

}  // namespace emplace
