#include "placer/context.h"

#include <utility>

namespace emplace {
namespace {

// Valued under the evaluator's objective, which costs the search nothing.
std::vector<Solution> valued(std::vector<Solution> starts, Evaluator& evaluator) {
  for (Solution& start : starts) {
    start.value = evaluator.evaluate(start.placement, start.schedule);
  }
  evaluator.count(-evaluator.evaluations());
  return starts;
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

}  // namespace emplace
