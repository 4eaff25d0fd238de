#include "learn/train/environment.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/error.h"
#include "base/parallel.h"

namespace emplace::learn {
namespace {

// ColocRL's protocol: 15 steps, of which the first 5 do not count. All systems are measured so.
constexpr Nanoseconds kMeasuredSteps = 15;

}  // namespace

Environment::Environment(PlaceContext& context, const Budget& budget, std::string origin)
    : context_(context),
      budget_(budget),
      origin_(std::move(origin)),
      all_linked_(context.problem().cluster().fully_linked()) {}

std::int64_t Environment::affordable(std::int64_t wanted) const {
  if (!budget_.evaluations) return wanted;
  return std::clamp<std::int64_t>(*budget_.evaluations - context_.evaluations(), 0, wanted);
}

std::future<std::vector<SampleOutcome>> Environment::evaluate(std::vector<Placement> placements) {
  return begin<SampleOutcome>(
      std::move(placements),
      [this](const Placement& placement) {
        return evaluate_one(placement, [&] { return context_.evaluator().evaluate_uncounted(placement); });
      },
      [](const SampleOutcome& outcome) { return outcome; });
}

std::future<std::vector<OutcomeWithStarts>> Environment::evaluate_with_starts(
    std::vector<Placement> placements) {
  return begin<OutcomeWithStarts>(
      std::move(placements),
      [this](const Placement& placement) {
        OutcomeWithStarts result;
        result.starts.assign(problem().num_ops(), 0);
        result.outcome = evaluate_one(placement, [&] {
          return context_.evaluator().evaluate_uncounted(placement, result.starts);
        });
        return result;
      },
      [](const OutcomeWithStarts& result) { return result.outcome; });
}

template <class Result, class Evaluate, class OutcomeOf>
std::future<std::vector<Result>> Environment::begin(std::vector<Placement> placements,
                                                    const Evaluate& evaluate,
                                                    const OutcomeOf& outcome_of) {
  context_.evaluator().count(static_cast<std::int64_t>(placements.size()));
  auto shared = std::make_shared<std::vector<Placement>>(std::move(placements));
  auto running = std::async(std::launch::async, [this, shared, evaluate] {
    std::vector<Result> results(shared->size());
    parallel_for(results.size(), budget_.threads,
                 [&](std::size_t i) { results[i] = evaluate((*shared)[i]); });
    return results;
  });
  // Offered by whoever asks for the results, in order: threads must not decide between equals.
  return std::async(std::launch::deferred,
                    [this, shared, outcome_of, running = std::move(running)]() mutable {
                      std::vector<Result> results = running.get();
                      for (std::size_t i = 0; i < results.size(); ++i) {
                        offer((*shared)[i], outcome_of(results[i]));
                      }
                      return results;
                    });
}

void Environment::offer(Placement& placement, const SampleOutcome& outcome) {
  if (!outcome.valid) return;
  simulated_time_ += outcome.fits() ? kMeasuredSteps * outcome.step : outcome.step;
  const Evaluation value{outcome.step, outcome.overflow};
  const std::optional<Evaluation> best = context_.incumbent().value();
  if (best && !(value < *best)) return;
  context_.incumbent().offer({std::move(placement), {}, value, origin_});
}

template <class ValueOf>
SampleOutcome Environment::evaluate_one(const Placement& placement, const ValueOf& value_of) {
  const auto begin = std::chrono::steady_clock::now();
  SampleOutcome outcome;
  try {
    if (!all_linked_) check_placement(problem(), placement);
    const Evaluation value = value_of();
    outcome.step = value.step;
    outcome.overflow = value.overflow;
  } catch (const Error&) {
    outcome.valid = false;
  }
  evaluation_nanoseconds_ +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
          .count();
  return outcome;
}

double Environment::take_evaluation_seconds() {
  return static_cast<double>(evaluation_nanoseconds_.exchange(0)) * 1e-9;
}

}  // namespace emplace::learn
