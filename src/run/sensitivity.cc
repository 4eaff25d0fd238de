#include "run/sensitivity.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

#include "run/cluster_scale.h"
#include "run/larger_cluster.h"
#include "run/portfolio.h"

namespace emplace {
namespace {

struct Change {
  const char* resource;
  double ClusterScale::*value;
  double factor;
  const char* what;
};

// Where times are measured, figures that estimates use change nothing.
std::vector<Change> changes_of(const Problem& problem) {
  std::vector<Change> changes;
  if (problem.cost_origin(kMeasuredCosts).ops > 0 || !problem.compile_options().sources.empty()) {
    changes.push_back({"speed", &ClusterScale::speed, 2, "devices twice as fast"});
  } else {
    changes.push_back({"compute", &ClusterScale::compute, 2, "twice the FLOP/s"});
    changes.push_back(
        {"memory-bandwidth", &ClusterScale::memory_bandwidth, 2, "twice the memory bandwidth"});
  }
  changes.push_back({"memory", &ClusterScale::memory, 2, "twice the memory"});
  if (problem.num_devices() > 1) {
    changes.push_back({"bandwidth", &ClusterScale::bandwidth, 2, "links of twice the bandwidth"});
    changes.push_back({"latency", &ClusterScale::latency, 0.5, "links of half the latency"});
  }
  return changes;
}

std::shared_ptr<const Problem> on_cluster(const Assessment& answer, Cluster cluster) {
  return compile(std::shared_ptr<const Graph>(answer.simulator, &answer.problem().graph()),
                 std::make_shared<const Cluster>(std::move(cluster)),
                 answer.problem().compile_options());
}

std::shared_ptr<const Problem> changed(const Assessment& answer, const Change& change) {
  ClusterScale scale;
  scale.*change.value = change.factor;
  return on_cluster(answer, scaled(answer.problem().cluster(), scale));
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

// The best of a search from the placement on; nothing where it is proven that nothing fits.
std::optional<Solution> search_on(const SubsetProblems& problems, const Budget& budget,
                                  const std::string& scheduler) {
  if (problems.why_nothing_fits()) return std::nullopt;
  const PortfolioResult searched =
      Portfolio(problems, {.runs = make_runs("auto", scheduler), .budget = budget.restarted()})
          .run();
  const RunResult& best = searched.best();
  return Solution{best.result.placement, best.result.schedule, {}, "other hardware"};
}

SubsetProblems problems_on(const Assessment& answer, std::shared_ptr<const Problem> problem,
                           const Solution& start) {
  return {std::move(problem),
          answer.objective,
          answer.most_devices,
          {start},
          answer.leaves_cpus_out ? CpuUse::kNever : CpuUse::kAlways};
}

bool uses(const Solution& solution, DeviceId device) {
  return std::find(solution.placement.begin(), solution.placement.end(), device) !=
         solution.placement.end();
}

// A cluster with one more device, where one is to be tried.
class AnotherDevice {
 public:
  AnotherDevice(const Assessment& answer, Cluster larger, const Solution& start,
                std::string scheduler)
      : answer_(answer),
        scheduler_(std::move(scheduler)),
        device_(larger.num_devices() - 1),
        kind_(larger.device(device_).kind),
        problems_(problems_on(answer, on_cluster(answer, std::move(larger)), start)) {}

  // Placements that do not use the device join those that are known.
  void search(const Budget& budget, std::vector<Solution>& known) {
    std::optional<Solution> found = search_on(problems_, budget, scheduler_);
    if (!found) return;
    (uses(*found, device_) ? own_ : known).push_back(std::move(*found));
  }

  Sensitivity best(const std::vector<Solution>& known) const {
    std::vector<Solution> all = known;
    all.insert(all.end(), own_.begin(), own_.end());
    return {"devices", static_cast<double>(device_ + 1) / device_, "one more " + kind_,
            best_of(all, problems_.whole(), answer_.objective, scheduler_)};
  }

 private:
  const Assessment& answer_;
  std::string scheduler_;
  DeviceId device_;
  std::string kind_;
  SubsetProblems problems_;
  std::vector<Solution> own_;
};

// A search that may not use all devices has one to spare already.
std::optional<AnotherDevice> another_device(const Assessment& answer, const Solution& start,
                                            const std::string& scheduler) {
  if (answer.most_devices > 0) return std::nullopt;
  std::optional<Cluster> larger = with_one_more_device(answer.problem().cluster());
  if (!larger) return std::nullopt;
  try {
    return std::optional<AnotherDevice>(std::in_place, answer, std::move(*larger), start,
                                        scheduler);
  } catch (const Error&) {
    return std::nullopt;  // times that were measured on devices by their names are not known of it
  }
}

Sensitivities tried_on_all(const Assessment& answer, const std::optional<Budget>& each,
                           const std::string& scheduler) {
  std::vector<Solution> known{{answer.placement, answer.schedule, {}, "the answer"}};
  Sensitivities result;
  std::vector<std::shared_ptr<const Simulator>> simulators;
  for (const Change& change : changes_of(answer.problem())) {
    const SubsetProblems problems = problems_on(answer, changed(answer, change), known.front());
    result.list.push_back({change.resource, change.factor, change.what, {}});
    simulators.push_back(problems.whole());
    if (!each) continue;
    if (auto found = search_on(problems, *each, scheduler)) known.push_back(std::move(*found));
  }
  std::optional<AnotherDevice> more =
      each ? another_device(answer, known.front(), scheduler) : std::nullopt;
  if (more) more->search(*each, known);
  result.now = best_of(known, answer.simulator, answer.objective, scheduler);
  for (std::size_t i = 0; i < result.list.size(); ++i) {
    result.list[i].value = best_of(known, simulators[i], answer.objective, scheduler);
  }
  if (more) result.list.push_back(more->best(known));
  std::stable_sort(result.list.begin(), result.list.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  return result;
}

}  // namespace

// Every placement that is found is tried on the hardware as it is and on each that is changed, so
// that no change is slower than what is known without it.
Sensitivities sensitivities(const Assessment& answer, const Budget& each,
                            const std::string& scheduler) {
  return tried_on_all(answer, each, scheduler);
}

Sensitivities sensitivities_of_placement(const Assessment& answer) {
  return tried_on_all(answer, std::nullopt, std::string(kOwnSchedule));
}

}  // namespace emplace
