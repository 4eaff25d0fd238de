#include "learn/general/exercises.h"

#include <algorithm>
#include <utility>

#include "learn/features/device_view.h"
#include "learn/general/kinds.h"
#include "learn/train/state.h"

namespace emplace::learn {
namespace {

std::string kept_by(const GeneralAgent& agent) {
  StateWriter state;
  agent.save(state);
  return state.bytes();
}

std::vector<DeviceId> devices_used_by(const Placement& placement) {
  std::vector<DeviceId> used(placement.begin(), placement.end());
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

}  // namespace

Exercises::Exercises(std::vector<TrainingTask> tasks, const MultiGraphSettings& settings,
                     const Rng& rng)
    : settings_(settings), rng_(rng) {
  for (TrainingTask& task : tasks) desks_.push_back({.task = std::move(task)});
}

GeneralAgent& Exercises::agent(std::size_t i) {
  Desk& desk = desks_[i];
  if (desk.agent == nullptr) {
    Rng weights = rng_.split(1);  // the same for all
    desk.agent = make_agent(settings_.kind, desk.task.context->problem(), settings_.network,
                            settings_.device, weights);
    desk.fresh = kept_by(*desk.agent);
  }
  return *desk.agent;
}

ExerciseOutcome Exercises::run(const ExerciseStep& step, const Exercise& exercise,
                               const Budget& budget) {
  GeneralAgent& agent = this->agent(exercise.task);
  Desk& desk = desks_[exercise.task];
  PlaceContext& context = *desk.task.context;
  Budget own = budget;
  own.threads = 1;
  Environment environment(context, own, settings_.kind);
  Rng rng = step.rng.split(exercise.task);
  ExerciseOutcome outcome;
  const bool explored = step.epoch > 0 && desk.explored == step.number;
  if (!explored) {
    agent.parameters().assign(step.first);
    agent.load(StateReader(exercise.kept.empty() ? desk.fresh : exercise.kept, "what is kept"));
    context.evaluator().count(exercise.evaluations - context.evaluations());
  }
  switch (step.kind) {
    case ExerciseKind::kEncoder:
      outcome.gradient = agent.encoder_gradient(rng);
      outcome.learned = !outcome.gradient.empty();
      break;
    case ExerciseKind::kImitation:
      if (exercise.example) imitate(desk, exercise, environment, rng, outcome);
      break;
    case ExerciseKind::kPractice:
      outcome.learned = explored || explore(desk, environment, rng, outcome);
      desk.explored = outcome.learned ? step.number : 0;
      if (!outcome.learned) break;
      if (step.epoch > 0) {
        // Later gradients are told by how far the policy has moved since the first.
        if (!explored) agent.gradient();
        agent.parameters().assign(step.now);
      }
      outcome.gradient = agent.gradient();
  }
  outcome.kept = kept_by(agent);
  outcome.evaluations = context.evaluations();
  return outcome;
}

void Exercises::imitate(Desk& desk, const Exercise& exercise, Environment& environment, Rng& rng,
                        ExerciseOutcome& outcome) {
  desk.agent->use(devices_used_by(*exercise.example));
  Imitation imitation = desk.agent->imitate(*exercise.example, environment, rng);
  outcome.gradient = std::move(imitation.gradient);
  outcome.likelihood = imitation.likelihood;
  outcome.learned = true;
}

bool Exercises::explore(Desk& desk, Environment& environment, Rng& rng, ExerciseOutcome& outcome) {
  const std::size_t all = environment.problem().num_devices();
  const bool fewer = rng.chance(settings_.fewer_devices);
  const std::size_t count = fewer ? 1 + rng.below(all) : all;
  desk.agent->use(desk.agent->views().fastest(count));
  TrainingPoint point;
  const bool learned = desk.agent->explore(environment, rng, point);
  outcome.mean_seconds = point.mean_seconds;
  outcome.fitting_share = point.fitting_share;
  return learned;
}

}  // namespace emplace::learn
