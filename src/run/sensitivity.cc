#include "run/sensitivity.h"

#include <algorithm>
#include <optional>

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

// What the best of the placements takes there.
Evaluation best_of(const std::vector<Solution>& placements,
                   const std::shared_ptr<const Simulator>& simulator, const Objective& objective,
                   const std::string& scheduler) {
  Evaluator evaluator(simulator, objective);
  evaluator.order_by(scheduler);
  std::optional<Evaluation> best;
  for (const Solution& solution : placements) {
    const Evaluation value = evaluator.evaluate_exactly(solution.placement, solution.schedule);
    if (!best || value < *best) best = value;
  }
  return *best;
}

}  // namespace

// Every placement that is found is tried on the hardware as it is and on each that is changed, so
// that no change is slower than what is known without it.
Sensitivities sensitivities(const Assessment& answer, const Budget& each,
                            const std::string& scheduler) {
  std::vector<Solution> known{{answer.placement, answer.schedule, {}, "the answer"}};
  Sensitivities result;
  std::vector<std::shared_ptr<const Simulator>> simulators;
  for (const Change& change : changes_of(answer.problem())) {
    const SubsetProblems problems(changed(answer, change), answer.objective, answer.most_devices,
                                  {known.front()},
                                  answer.leaves_cpus_out ? CpuUse::kNever : CpuUse::kAlways);
    result.list.push_back({change.resource, change.factor, {}});
    simulators.push_back(problems.whole());
    if (problems.why_nothing_fits()) continue;
    const PortfolioResult searched =
        Portfolio(problems, {.runs = make_runs("auto", scheduler), .budget = each.restarted()})
            .run();
    const RunResult& best = searched.best();
    known.push_back({best.result.placement, best.result.schedule, {}, change.resource});
  }
  result.now = best_of(known, answer.simulator, answer.objective, scheduler);
  for (std::size_t i = 0; i < result.list.size(); ++i) {
    result.list[i].value = best_of(known, simulators[i], answer.objective, scheduler);
  }
  std::stable_sort(result.list.begin(), result.list.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  return result;
}

}  // namespace emplace
