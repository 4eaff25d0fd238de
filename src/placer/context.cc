#include "placer/context.h"

#include <utility>

namespace emplace {
namespace {

// Valued under the evaluator's objective and scheduler, which costs the search nothing.
std::vector<Solution> valued(std::vector<Solution> starts, Evaluator& evaluator) {
  for (Solution& start : starts) {
    start.schedule = evaluator.schedule_of(start.placement, std::move(start.schedule));
    start.value = evaluator.evaluate(start.placement, start.schedule);
  }
  evaluator.count(-evaluator.evaluations());
  return starts;
}

std::unique_ptr<Evaluator> part_of(const Evaluator& whole, const Objective& objective) {
  auto part = std::make_unique<Evaluator>(whole.simulator(), objective);
  part->order_by(whole.scheduler());
  part->measure_with(whole.measure());
  return part;
}

}  // namespace

PlaceContext::PlaceContext(std::unique_ptr<Evaluator> evaluator, std::vector<Solution> starts)
    : SearchContext(valued(std::move(starts), *evaluator)), evaluator_(std::move(evaluator)) {}

PlaceContext::PlaceContext(std::shared_ptr<const Simulator> simulator, Objective objective,
                           std::vector<Solution> starts)
    : PlaceContext(std::make_unique<Evaluator>(std::move(simulator), objective),
                   std::move(starts)) {}

PlaceContext::PlaceContext(std::shared_ptr<const Problem> problem, Objective objective,
                           std::vector<Solution> starts)
    : PlaceContext(std::make_shared<const Simulator>(std::move(problem)), objective,
                   std::move(starts)) {}

PlaceContext::PlaceContext(const Evaluator& whole, Objective objective,
                           std::vector<Solution> starts)
    : PlaceContext(part_of(whole, objective), std::move(starts)) {}

void PlaceContext::order_by(const std::string& scheduler) {
  if (scheduler == evaluator_->scheduler()) return;
  evaluator_->order_by(scheduler);
  value_starts();
}

void PlaceContext::measure_with(Evaluator::Measure measure) {
  evaluator_->measure_with(std::move(measure));
  value_starts();
}

void PlaceContext::value_starts() {
  const std::int64_t before = evaluations();
  set_starts(valued(starts(), *evaluator_));
  evaluator_->count(before);
}

}  // namespace emplace
