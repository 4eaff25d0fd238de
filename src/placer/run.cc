#include "placer/run.h"

#include "base/error.h"

#include "placer/scheduler.h"

namespace emplace {

RunResult run_placer(const PlacerRegistry& registry,
                     const std::shared_ptr<const Simulator>& simulator, const PlacerRun& run,
                     const Budget& budget) {
  const Problem& problem = simulator->problem();
  Evaluator evaluator(simulator);
  const std::unique_ptr<Placer> placer = registry.make(run.placer);
  RunResult result{run, {}, {}, 0, 0};
  const double start = budget.elapsed_seconds();
  with_context("placer '" + run.placer.key + "'", [&] {
    result.result = placer->place(problem, evaluator, budget, Rng(run.seed));
    check_placement(problem, result.result.placement);
  });
  result.seconds = budget.elapsed_seconds() - start;
  result.evaluations = evaluator.evaluations();
  return with_scheduler(result, run.scheduler, simulator);
}

RunResult with_scheduler(const RunResult& base, const std::string& scheduler,
                         const std::shared_ptr<const Simulator>& simulator) {
  RunResult result = base;
  result.run.scheduler = scheduler;
  if (scheduler != kOwnSchedule) {
    result.result.schedule =
        make_schedule(simulator->problem(), result.result.placement, scheduler);
  }
  result.evaluation =
      Evaluator(simulator).evaluate(result.result.placement, result.result.schedule);
  return result;
}

}  // namespace emplace
