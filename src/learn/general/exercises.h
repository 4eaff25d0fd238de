// What a step of training asks of one task, and doing it: a gradient at the parameters of the step.
// All that it depends on is in the question, so it does not matter who does it, or how often.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "base/rng.h"

#include "sim/placement.h"

#include "learn/general/agent.h"
#include "learn/general/training.h"

namespace emplace::learn {

enum class ExerciseKind : std::uint8_t { kEncoder, kImitation, kPractice };
inline constexpr auto kLastExerciseKind = ExerciseKind::kPractice;

// What the exercises of a step have in common. A step of practice has several epochs: what was
// explored in the first is learned from in all.
struct ExerciseStep {
  ExerciseKind kind = ExerciseKind::kPractice;
  std::uint64_t number = 0;  // of the training's steps; none is 0, no two are alike
  std::int64_t epoch = 0;
  Rng rng{0};
  std::vector<torch::Tensor> first = {};  // the parameters of the first epoch
  std::vector<torch::Tensor> now = {};    // those of this one
};

struct Exercise {
  std::size_t task = 0;
  // When the step began: what the task's agent has kept, empty where it is new, and how many
  // placements of the task had been evaluated.
  std::string kept = {};
  std::int64_t evaluations = 0;
  std::optional<Placement> example = std::nullopt;  // for imitation
};

struct ExerciseOutcome {
  bool learned = false;
  std::vector<torch::Tensor> gradient = {};  // none where nothing was learned
  std::string kept = {};
  std::int64_t evaluations = 0;
  double likelihood = 0;
  double mean_seconds = 0;
  double fitting_share = 0;
};

// The tasks of a training with their agents, which are made when they are first needed.
class Exercises {
 public:
  Exercises(std::vector<TrainingTask> tasks, const MultiGraphSettings& settings, const Rng& rng);

  std::size_t size() const { return desks_.size(); }
  const TrainingTask& task(std::size_t i) const { return desks_[i].task; }
  // Two threads may ask for different ones.
  GeneralAgent& agent(std::size_t i);

  // Likewise. The budget's threads are not used.
  ExerciseOutcome run(const ExerciseStep& step, const Exercise& exercise, const Budget& budget);

 private:
  struct Desk {
    TrainingTask task;
    GeneralAgentPtr agent = nullptr;
    std::string fresh = {};      // what a new agent keeps
    std::uint64_t explored = 0;  // the step whose exploration the agent has
  };

  void imitate(Desk& desk, const Exercise& exercise, Environment& environment, Rng& rng,
               ExerciseOutcome& outcome);
  // Whether there is something to learn from.
  bool explore(Desk& desk, Environment& environment, Rng& rng, ExerciseOutcome& outcome);

  MultiGraphSettings settings_;
  Rng rng_;
  std::vector<Desk> desks_;
};

}  // namespace emplace::learn
