#include "placer/run.h"

#include "base/error.h"
#include "placer/scheduler.h"

namespace emplace {

RunResult run_placer(const PlacerRegistry& registry, std::shared_ptr<const Problem> problem,
                     const PlacerRun& run, const Budget& budget) {
  const std::unique_ptr<Placer> placer = registry.make(run.placer);
  Evaluator evaluator(problem);
  RunResult result{run, {}, {}, 0, 0};
  const double start = budget.elapsed_seconds();
  result.result = placer->place(*problem, evaluator, budget, Rng(run.seed));
  if (run.scheduler != kOwnSchedule) {
    result.result.schedule = make_schedule(*problem, result.result.placement, run.scheduler);
  }
  result.seconds = budget.elapsed_seconds() - start;
  result.evaluations = evaluator.evaluations();
  with_context("placer '" + run.placer.key + "'",
               [&] { check_placement(*problem, result.result.placement); });
  result.evaluation = evaluator.evaluate(result.result.placement, result.result.schedule);
  return result;
}

}  // namespace emplace
