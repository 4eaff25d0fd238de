#include "learn/controllers/round.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.h"

#include "placer/placement_messages.h"

#include "learn/learners/baseline.h"
#include "learn/nn/deadline.h"
#include "learn/nn/optimizer.h"
#include "learn/nn/tensor_messages.h"
#include "learn/policies/policy.h"

namespace emplace::learn {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void put_state(dist::Writer& writer, const Rng::State& state) {
  for (const std::uint64_t word : state) writer.number(word);
}

Rng::State take_state(dist::Reader& reader) {
  Rng::State state{};
  for (std::uint64_t& word : state) word = reader.number<std::uint64_t>();
  return state;
}

void put_outcomes(dist::Writer& writer, const std::vector<SampleOutcome>& outcomes) {
  writer.number<std::uint64_t>(outcomes.size());
  for (const SampleOutcome& outcome : outcomes) {
    put(writer, Evaluation{outcome.step, outcome.overflow});
    writer.flag(outcome.valid);
  }
}

std::vector<SampleOutcome> take_outcomes(dist::Reader& reader) {
  std::vector<SampleOutcome> outcomes(reader.count(sizeof(Nanoseconds)));
  for (SampleOutcome& outcome : outcomes) {
    const Evaluation value = take_value(reader);
    outcome.step = value.step;
    outcome.overflow = value.overflow;
    outcome.valid = reader.flag();
  }
  return outcomes;
}

// The first of the best; their number where none can run.
std::size_t best_of(const std::vector<SampleOutcome>& outcomes) {
  std::size_t best = outcomes.size();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].valid) continue;
    const Evaluation value{outcomes[i].step, outcomes[i].overflow};
    if (best == outcomes.size() ||
        value < Evaluation{outcomes[best].step, outcomes[best].overflow}) {
      best = i;
    }
  }
  return best;
}

}  // namespace

void put(dist::Writer& writer, const RoundTask& task) {
  writer.number(task.run).number(task.number).number(task.epoch).number(task.updates);
  writer.number(task.samples);
  writer.flag(task.learns).number(task.seconds);
  put_state(writer, task.rng);
  writer.numbers(task.memory).flag(task.parameters != nullptr);
  if (task.parameters != nullptr) writer.text(*task.parameters);
  writer.numbers(task.owners).numbers(task.workers);
}

RoundTask take_round_task(dist::Reader& reader) {
  RoundTask task;
  task.run = reader.number<std::uint64_t>();
  task.number = reader.number<std::uint64_t>();
  task.epoch = reader.number<std::uint64_t>();
  task.updates = reader.number<std::uint64_t>();
  task.samples = reader.number<std::int64_t>();
  if (task.samples < 1) fail_input("a round has {} samples", task.samples);
  task.learns = reader.flag();
  task.seconds = reader.number<double>();
  task.rng = take_state(reader);
  task.memory = reader.numbers<double>();
  MovingBaseline::check_memory(task.memory);
  if (reader.flag()) task.parameters = std::make_shared<std::string>(reader.text());
  task.owners = reader.numbers<std::int32_t>();
  task.workers = reader.numbers<std::int32_t>();
  reader.end();
  return task;
}

void put(dist::Writer& writer, const RoundResult& result, const Problem& problem) {
  writer.number<std::int32_t>(result.rank).number(result.epoch).flag(result.in_time);
  put_state(writer, result.rng);
  writer.numbers(result.memory).flag(!result.gradient.empty());
  if (!result.gradient.empty()) put_tensors(writer, result.gradient);
  const UpdateReport& report = result.report;
  for (const double value : {report.mean_cost, report.baseline, report.entropy,
                             report.gradient_norm, result.policy_seconds, result.learner_seconds,
                             result.waiting_seconds, result.evaluation_seconds}) {
    writer.number(value);
  }
  put_outcomes(writer, result.outcomes);
  writer.number<std::uint64_t>(result.best);
  if (result.best < result.outcomes.size()) put_placement(writer, result.placement, problem);
}

RoundResult take_round_result(dist::Reader& reader, const std::vector<torch::Tensor>& parameters,
                              const Problem& problem) {
  RoundResult result;
  result.rank = reader.number<std::int32_t>();
  result.epoch = reader.number<std::uint64_t>();
  result.in_time = reader.flag();
  result.rng = take_state(reader);
  result.memory = reader.numbers<double>();
  MovingBaseline::check_memory(result.memory);
  if (reader.flag()) result.gradient = take_tensors(reader, parameters);
  UpdateReport& report = result.report;
  for (double* value : {&report.mean_cost, &report.baseline, &report.entropy, &report.gradient_norm,
                        &result.policy_seconds, &result.learner_seconds, &result.waiting_seconds,
                        &result.evaluation_seconds}) {
    *value = reader.number<double>();
  }
  result.outcomes = take_outcomes(reader);
  result.best = static_cast<std::size_t>(reader.number<std::uint64_t>());
  if (result.best != best_of(result.outcomes)) fail_input("its best sample is not the best");
  if (result.best < result.outcomes.size()) result.placement = take_placement(reader, problem);
  reader.end();
  return result;
}

GradientLearner& gradient_learner(const SamplingParts& parts) {
  auto* learner = dynamic_cast<GradientLearner*>(parts.learner.get());
  if (learner == nullptr) {
    fail_option("several controllers learn by REINFORCE: expected learner=reinforce");
  }
  return *learner;
}

ControllerSeat::ControllerSeat(const SamplingSystem& system, PlaceContext& whole, std::string key,
                               Rng weights)
    : key_(std::move(key)),
      context_(whole.evaluator(), whole.objective()),
      parts_(make_parts(system, whole.problem(), whole.learning().device, weights)),
      learner_(&gradient_learner(parts_)) {}

void ControllerSeat::work_with(WorkerRanks* workers) {
  workers_ = workers;
  context_.value_with(workers);
}

RoundResult ControllerSeat::run(const RoundTask& task, const Budget& budget,
                                ParameterShards* shards) {
  Budget own = budget.restarted();
  own.evaluations.reset();
  own.seconds.reset();
  if (task.seconds >= 0) own.seconds = task.seconds;
  if (workers_ != nullptr) workers_->choose(task.workers);
  RoundResult result;
  result.epoch = task.epoch;
  result.rng = task.rng;
  result.memory = task.memory;
  Deadline deadline(own);
  try {
    learn(task, own, shards, result);
  } catch (const std::exception&) {
    if (!deadline.passed()) throw;
    result.in_time = false;
    result.gradient.clear();
  }
  return result;
}

void ControllerSeat::learn(const RoundTask& task, const Budget& budget, ParameterShards* shards,
                           RoundResult& result) {
  Policy& policy = *parts_.policy;
  std::vector<std::uint64_t> epochs;
  if (task.parameters != nullptr) {
    dist::Reader reader(*task.parameters);
    policy.parameters().assign(take_tensors(reader, policy.parameters().tensors()));
  } else if (shards != nullptr) {
    epochs = shards->fetch(policy.parameters(), [] { check_time(); });
    // Of a shard that has not begun anew yet.
    if (!epochs.empty()) result.epoch = *std::min_element(epochs.begin(), epochs.end());
  }
  policy.begin_round(static_cast<std::int64_t>(task.number));
  learner_->recall(task.memory, static_cast<std::int64_t>(task.updates));
  Rng rng(task.rng);
  const Clock::time_point sampling = Clock::now();
  const Samples samples = policy.sample(task.samples, rng);
  std::vector<Placement> placements;
  for (std::int64_t i = 0; i < task.samples; ++i) {
    placements.push_back(policy.placement(samples, i));
  }
  result.policy_seconds = since(sampling);
  Environment environment(context_, budget, key_);
  PendingOutcomes outcomes(environment.evaluate(std::move(placements)));
  const auto collect = [&] {
    result.outcomes = outcomes.get();
    result.best = best_of(result.outcomes);
    result.waiting_seconds = outcomes.waited_seconds();
    result.evaluation_seconds = environment.take_evaluation_seconds();
    if (result.best == result.outcomes.size()) return;
    result.placement = policy.placement(samples, static_cast<std::int64_t>(result.best));
  };
  if (!task.learns) return collect();
  const Clock::time_point learning = Clock::now();
  GradientLearner::Found found;
  try {
    found = learner_->find_gradient(policy, samples, outcomes, budget.threads);
  } catch (const std::exception&) {
    // What was sampled counts though there may be no time left to learn from it.
    collect();
    throw;
  }
  collect();
  result.learner_seconds = since(learning) - outcomes.waited_seconds();
  result.report = found.report;
  result.memory = learner_->memory();
  result.rng = rng.state();
  if (shards == nullptr) {
    result.gradient = std::move(found.gradient);
  } else if (!found.gradient.empty()) {
    result.report.gradient_norm =
        Optimizer::clip(learner_->steps(), policy.parameters(), found.gradient);
    if (std::isfinite(result.report.gradient_norm)) shards->push(epochs, found.gradient);
  }
}

}  // namespace emplace::learn
