#include "placer/run.h"

#include "base/error.h"

#include "placer/scheduler.h"

namespace emplace {

RunResult run_placer(const PlacerRegistry& registry, PlaceContext& context, const PlacerRun& run,
                     const Budget& budget) {
  const std::unique_ptr<Placer> placer = run.make ? run.make() : registry.make(run.placer);
  RunResult result{.run = run, .result = {}, .evaluation = {}, .bound = {}};
  const double start = budget.elapsed_seconds();
  with_context("placer '" + run.placer.key + "'", [&] {
    result.result = placer->place(context, budget, Rng(run.seed));
    check_placement(context.problem(), result.result.placement);
  });
  result.seconds = budget.elapsed_seconds() - start;
  result.evaluations = context.evaluations();
  result.bound = context.incumbent().bound();
  return with_scheduler(result, run.scheduler, context.evaluator());
}

RunResult with_scheduler(const RunResult& base, const std::string& scheduler,
                         Evaluator& evaluator) {
  RunResult result = base;
  result.run.scheduler = scheduler;
  if (scheduler != kOwnSchedule) {
    result.result.schedule = make_schedule(evaluator.problem(), result.result.placement, scheduler);
  }
  result.evaluation = evaluator.evaluate_exactly(result.result.placement, result.result.schedule);
  return result;
}

}  // namespace emplace
