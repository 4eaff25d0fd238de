#include "run/sensitivity.h"

#include <algorithm>

#include "run/cluster_scale.h"
#include "run/portfolio.h"

namespace emplace {
namespace {

struct Change {
  const char* resource;
  double ClusterScale::*value;
  double factor;
};

// Where times are measured, figures that estimates use change nothing.
std::vector<Change> changes_of(const Problem& problem) {
  std::vector<Change> changes;
  if (problem.cost_origin(kMeasuredCosts).ops > 0 || !problem.compile_options().sources.empty()) {
    changes.push_back({"speed", &ClusterScale::speed, 2});
  } else {
    changes.push_back({"compute", &ClusterScale::compute, 2});
    changes.push_back({"memory-bandwidth", &ClusterScale::memory_bandwidth, 2});
  }
  changes.push_back({"memory", &ClusterScale::memory, 2});
  if (problem.num_devices() > 1) {
    changes.push_back({"bandwidth", &ClusterScale::bandwidth, 2});
    changes.push_back({"latency", &ClusterScale::latency, 0.5});
  }
  return changes;
}

std::shared_ptr<const Problem> changed(const Assessment& answer, const Change& change) {
  ClusterScale scale;
  scale.*change.value = change.factor;
  const auto& owner = answer.simulator;
  return compile(std::shared_ptr<const Graph>(owner, &answer.problem().graph()),
                 std::make_shared<const Cluster>(scaled(answer.problem().cluster(), scale)),
                 answer.problem().compile_options());
}

}  // namespace

Sensitivities sensitivities(const Assessment& answer, const Budget& each) {
  Evaluator here(answer.simulator, answer.objective);
  Sensitivities result{here.evaluate(answer.placement, answer.schedule), {}};
  for (const Change& change : changes_of(answer.problem())) {
    const SubsetProblems problems(changed(answer, change), answer.objective, answer.most_devices,
                                  {{answer.placement, answer.schedule, {}, "the answer"}},
                                  answer.leaves_cpus_out ? CpuUse::kNever : CpuUse::kAlways);
    Sensitivity found{change.resource, change.factor, problems.starts().front().value};
    if (!problems.why_nothing_fits()) {
      const PortfolioResult searched =
          Portfolio(problems, {.runs = make_runs("auto", "own"), .budget = each.restarted()}).run();
      const RunResult& best = searched.best();
      found.value = std::min(found.value, best.evaluation);
      result.now = std::min(result.now, here.evaluate(best.result.placement, best.result.schedule));
    }
    result.list.push_back(found);
  }
  std::stable_sort(result.list.begin(), result.list.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  return result;
}

}  // namespace emplace
