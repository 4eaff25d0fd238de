#include "learn/train/environment.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <type_traits>

#include "base/parallel.h"

namespace emplace::learn {
namespace {

// ColocRL's protocol: 15 steps, of which the first 5 do not count. All systems are measured so.
constexpr Nanoseconds kMeasuredSteps = 15;

Nanoseconds measuring_time(const SampleOutcome& outcome) {
  if (!outcome.valid) return 0;
  return outcome.fits() ? kMeasuredSteps * outcome.step : outcome.step;
}

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

template <class ResultOf>
auto Environment::begin(std::vector<Placement> placements, bool with_starts,
                        const ResultOf& result_of) {
  context_.evaluator().count(static_cast<std::int64_t>(placements.size()));
  auto shared = std::make_shared<std::vector<Placement>>(std::move(placements));
  auto running = std::async(std::launch::async,
                            [this, shared, with_starts] { return value(*shared, with_starts); });
  // Offered by whoever asks for the results, in order: threads must not decide between equals.
  return std::async(std::launch::deferred,
                    [this, shared, result_of, running = std::move(running)]() mutable {
                      using Result = std::invoke_result_t<ResultOf, SampleOutcome, ValuedSample&>;
                      std::vector<ValuedSample> samples = running.get();
                      std::vector<Result> results;
                      for (std::size_t i = 0; i < samples.size(); ++i) {
                        const SampleOutcome outcome{samples[i].value.step,
                                                    samples[i].value.overflow, samples[i].valid};
                        offer((*shared)[i], outcome);
                        results.push_back(result_of(outcome, samples[i]));
                      }
                      return results;
                    });
}

std::future<std::vector<SampleOutcome>> Environment::evaluate(std::vector<Placement> placements) {
  return begin(std::move(placements), false,
               [](const SampleOutcome& outcome, ValuedSample&) { return outcome; });
}

std::future<std::vector<OutcomeWithStarts>> Environment::evaluate_with_starts(
    std::vector<Placement> placements) {
  return begin(std::move(placements), true, [](const SampleOutcome& outcome, ValuedSample& sample) {
    return OutcomeWithStarts{outcome, std::move(sample.starts)};
  });
}

std::vector<ValuedSample> Environment::value(const std::vector<Placement>& placements,
                                             bool with_starts) {
  using Clock = std::chrono::steady_clock;
  const auto note_time = [this](Clock::time_point begin) {
    evaluation_nanoseconds_ +=
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  };
  if (Valuers* valuers = context_.valuers()) {
    const Clock::time_point begin = Clock::now();
    std::vector<ValuedSample> samples = valuers->value(placements, with_starts, budget_.threads);
    note_time(begin);
    return samples;
  }
  std::vector<ValuedSample> samples(placements.size());
  const bool takes_long = context_.evaluator().measures();
  parallel_for(samples.size(), budget_.threads, [&](std::size_t i) {
    if (takes_long && budget_.spent(0)) {
      samples[i].valid = false;
      if (with_starts) samples[i].starts.assign(context_.problem().num_ops(), 0);
      return;
    }
    const Clock::time_point begin = Clock::now();
    samples[i] = value_sample(context_.evaluator(), placements[i], with_starts, all_linked_);
    note_time(begin);
  });
  return samples;
}

void Environment::offer(Placement& placement, const SampleOutcome& outcome) {
  if (!outcome.valid) return;
  simulated_time_ += measuring_time(outcome);
  const Evaluation value{outcome.step, outcome.overflow};
  const std::optional<Evaluation> best = context_.incumbent().value();
  if (best && !(value < *best)) return;
  context_.incumbent().offer({std::move(placement), {}, value, origin_});
}

void Environment::hear(const std::vector<SampleOutcome>& outcomes, std::size_t index,
                       Placement placement) {
  context_.evaluator().count(static_cast<std::int64_t>(outcomes.size()));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (i != index) simulated_time_ += measuring_time(outcomes[i]);
  }
  if (index < outcomes.size()) offer(placement, outcomes[index]);
}

double Environment::take_evaluation_seconds() {
  return static_cast<double>(evaluation_nanoseconds_.exchange(0)) * 1e-9;
}

}  // namespace emplace::learn
