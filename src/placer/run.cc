#include "placer/run.h"

#include "base/error.h"

namespace emplace {
namespace {

RunResult with_best_scheduler(const RunResult& own, Evaluator& evaluator) {
  RunResult best = with_scheduler(own, std::string(kOwnSchedule), evaluator);
  if (!evaluator.objective().order_matters()) return best;
  for (const SchedulerInfo& scheduler : schedulers()) {
    RunResult other = with_scheduler(own, scheduler.key, evaluator);
    if (other.evaluation < best.evaluation) best = std::move(other);
  }
  return best;
}

// Whoever was interrupted cannot execute the answer once more: what it took before counts then.
void keep_measured(const PlaceContext& context, RunResult& result) {
  if (!context.evaluator().measures() || result.evaluation.fits()) return;
  const std::optional<Solution> known = context.incumbent().best();
  if (!known || known->placement != result.result.placement || !known->value.fits()) return;
  result.evaluation = known->value;
}

}  // namespace

RunResult run_placer(const PlacerRegistry& registry, PlaceContext& context, const PlacerRun& run,
                     const Budget& budget) {
  const std::unique_ptr<Placer> placer = run.make ? run.make() : registry.make(run.placer);
  const bool any_order = run.scheduler == kBestSchedule;
  context.order_by(any_order ? std::string(kOwnSchedule) : run.scheduler);
  RunResult result{.run = run, .result = {}, .evaluation = {}, .bound = {}};
  const double start = budget.elapsed_seconds();
  with_context("placer '" + run.placer.key + "'", [&] {
    result.result = placer->place(context, budget, Rng(run.seed));
    check_placement(context.problem(), result.result.placement);
  });
  result.seconds = budget.elapsed_seconds() - start;
  result.evaluations = context.evaluations();
  result.bound = context.incumbent().bound();
  result = any_order ? with_best_scheduler(result, context.evaluator())
                     : with_scheduler(result, run.scheduler, context.evaluator());
  keep_measured(context, result);
  return result;
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
