#include "learn/general/exercise_ranks.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

#include "placer/placement_messages.h"

#include "learn/nn/single_thread.h"
#include "learn/nn/tensor_messages.h"
#include "learn/train/state.h"

namespace emplace::learn {
namespace {

using dist::Reader;
using dist::Writer;

void put_exercise(Writer& writer, const Exercise& exercise, const Exercises& exercises) {
  writer.number<std::uint64_t>(exercise.task)
      .text(exercise.kept)
      .number(exercise.evaluations)
      .flag(exercise.example.has_value());
  if (!exercise.example) return;
  put_placement(writer, *exercise.example, exercises.task(exercise.task).context->problem());
}

Exercise take_exercise(Reader& reader, const Exercises& exercises) {
  Exercise exercise;
  exercise.task = static_cast<std::size_t>(reader.number<std::uint64_t>());
  if (exercise.task >= exercises.size()) {
    fail_input("an exercise is of task {}; expected less than {}", exercise.task, exercises.size());
  }
  exercise.kept = reader.text();
  exercise.evaluations = reader.number<std::int64_t>();
  if (!reader.flag()) return exercise;
  exercise.example = take_placement(reader, exercises.task(exercise.task).context->problem());
  return exercise;
}

void put_outcome(Writer& writer, const ExerciseOutcome& outcome) {
  writer.flag(outcome.learned)
      .text(outcome.kept)
      .number(outcome.evaluations)
      .number(outcome.likelihood)
      .number(outcome.mean_seconds)
      .number(outcome.fitting_share);
  if (outcome.learned) put_tensors(writer, outcome.gradient);
}

ExerciseOutcome take_outcome(Reader& reader, const Exercise& exercise,
                             const std::vector<torch::Tensor>& parameters) {
  ExerciseOutcome outcome;
  outcome.learned = reader.flag();
  outcome.kept = reader.text();
  StateReader(outcome.kept, "what an agent keeps");  // which says what is wrong with it
  outcome.evaluations = reader.number<std::int64_t>();
  if (outcome.evaluations < exercise.evaluations) {
    fail_input("it has evaluated {} placements; expected {} or more", outcome.evaluations,
               exercise.evaluations);
  }
  for (double* value : {&outcome.likelihood, &outcome.mean_seconds, &outcome.fitting_share}) {
    *value = reader.number<double>();
    if (*value < 0) fail_input("it tells of a course at {}", *value);
  }
  if (!outcome.learned) return outcome;
  // It may be infinite or none: others come to the same, and the optimizer then takes no step.
  outcome.gradient = take_tensors(reader, parameters);
  return outcome;
}

// `count` exercises of a step from the first on, side by side.
std::vector<ExerciseOutcome> run_side_by_side(Exercises& exercises, const ExerciseStep& step,
                                              const Exercise* first, std::size_t count,
                                              const Budget& budget) {
  std::vector<ExerciseOutcome> outcomes(count);
  parallel_for_tensors(count, budget.threads,
                       [&](std::size_t i) { outcomes[i] = exercises.run(step, first[i], budget); });
  return outcomes;
}

std::string bytes_of(const std::vector<ExerciseOutcome>& outcomes) {
  Writer writer;
  for (const ExerciseOutcome& outcome : outcomes) put_outcome(writer, outcome);
  return writer.take();
}

class ExerciseHelper final : public TrainingHelper {
 public:
  ExerciseHelper(std::vector<TrainingTask> tasks, const MultiGraphSettings& settings,
                 const Rng& rng, int threads)
      : exercises_(std::move(tasks), settings, rng), threads_(threads) {}

  std::string work(Reader& reader, dist::Line& line) override {
    const SingleThread single_thread;
    const auto kind = reader.number<std::uint8_t>();
    if (kind > static_cast<std::uint8_t>(kLastExerciseKind)) {
      fail_input("an exercise is of kind {}", kind);
    }
    step_.kind = static_cast<ExerciseKind>(kind);
    step_.number = reader.number<std::uint64_t>();
    step_.epoch = reader.number<std::int64_t>();
    Rng::State random{};
    for (std::uint64_t& word : random) word = reader.number<std::uint64_t>();
    step_.rng = Rng(random);
    const Budget budget = take_budget(reader, line);
    take_parameters(reader);
    const std::size_t count = reader.count(sizeof(std::uint64_t));
    std::vector<Exercise> own;
    for (std::size_t i = 0; i < count; ++i) own.push_back(take_exercise(reader, exercises_));
    reader.end();
    return bytes_of(run_side_by_side(exercises_, step_, own.data(), own.size(), budget));
  }

 private:
  Budget take_budget(Reader& reader, dist::Line& line) const {
    Budget budget;
    const auto seconds = reader.number<double>();
    const auto evaluations = reader.number<std::int64_t>();
    if (seconds >= 0) budget.seconds = seconds;
    if (evaluations >= 0) budget.evaluations = evaluations;
    budget.cancelled = &line.stopped();
    budget.threads = threads_;
    return budget;
  }

  // Those that it was not told before. What it lacks all the same is noticed when it is used.
  void take_parameters(Reader& reader) {
    const std::vector<torch::Tensor> like = exercises_.agent(0).parameters().tensors();
    if (first_of_ != step_.number) step_.first.clear();
    if (now_of_ != std::pair(step_.number, step_.epoch)) step_.now.clear();
    if (reader.flag()) step_.first = take_tensors(reader, like);
    if (reader.flag()) step_.now = take_tensors(reader, like);
    first_of_ = step_.number;
    now_of_ = {step_.number, step_.epoch};
  }

  Exercises exercises_;
  int threads_;
  ExerciseStep step_;  // the last one
  std::uint64_t first_of_ = 0;
  std::pair<std::uint64_t, std::int64_t> now_of_{};
};

}  // namespace

SharedExercises::SharedExercises(dist::Crew& crew, Exercises& here)
    : crew_(crew), here_(here), known_(static_cast<std::size_t>(crew.size())) {}

std::vector<std::optional<ExerciseOutcome>> SharedExercises::run(
    const ExerciseStep& step, const std::vector<Exercise>& exercises, const Budget& budget) {
  const std::vector<torch::Tensor> like = here_.agent(0).parameters().tensors();
  if (step.epoch == 0) {
    const auto ranks = static_cast<std::size_t>(crew_.size());
    part_size_ = std::clamp<std::size_t>((exercises.size() + ranks - 1) / ranks, 1,
                                         static_cast<std::size_t>(budget.threads));
    keepers_.clear();
    first_ = tensor_bytes(step.first);
  }
  now_ = step.epoch == 0 ? std::string() : tensor_bytes(step.now);
  const auto first_of = [&](std::size_t part) { return part * part_size_; };
  const auto size_of = [&](std::size_t part) {
    return std::min(part_size_, exercises.size() - first_of(part));
  };
  // What was explored is learned from in every epoch: that does not take long.
  Budget limits = budget;
  if (step.epoch > 0) {
    limits.seconds.reset();
    limits.cancelled = nullptr;
  }
  std::vector<std::optional<ExerciseOutcome>> outcomes(exercises.size());
  std::optional<Error> failure;
  std::size_t failed_part = 0;
  dist::Job job;
  job.tasks = (exercises.size() + part_size_ - 1) / part_size_;
  job.keepers = keepers_;
  keepers_.resize(job.tasks, 0);
  job.describe_to = [&](std::size_t part, int rank) {
    return describe(step, exercises, limits, part, rank);
  };
  job.here = [&](std::size_t part) {
    keepers_[part] = 0;
    return bytes_of(
        run_side_by_side(here_, step, &exercises[first_of(part)], size_of(part), limits));
  };
  job.accept = [&](std::size_t part, Reader& reader) {
    std::vector<ExerciseOutcome> taken;
    for (std::size_t i = 0; i < size_of(part); ++i) {
      taken.push_back(take_outcome(reader, exercises[first_of(part) + i], like));
    }
    reader.end();
    for (std::size_t i = 0; i < taken.size(); ++i) {
      outcomes[first_of(part) + i] = std::move(taken[i]);
    }
  };
  job.failed = [&](std::size_t part, const Error& error) {
    if (failure && failed_part < part) return;
    failure = error;
    failed_part = part;
  };
  job.cancelled = limits.cancelled;
  crew_.run(job);
  if (failure) throw *failure;
  return outcomes;
}

std::string SharedExercises::describe(const ExerciseStep& step,
                                      const std::vector<Exercise>& exercises, const Budget& budget,
                                      std::size_t part, int rank) {
  Known& known = known_[static_cast<std::size_t>(rank)];
  const bool explores = step.epoch == 0 || keepers_[part] != rank;
  keepers_[part] = rank;
  Writer writer;
  writer.number(static_cast<std::uint8_t>(TrainingRankTask::kExercises))
      .number(static_cast<std::uint8_t>(step.kind))
      .number(step.number)
      .number(step.epoch);
  for (const std::uint64_t word : step.rng.state()) writer.number(word);
  const double left =
      budget.seconds ? std::max(0.0, *budget.seconds - budget.elapsed_seconds()) : -1;
  writer.number(left).number(budget.evaluations.value_or(-1));
  const bool first = explores && known.first != step.number;
  const bool now = step.epoch > 0 && (known.step != step.number || known.epoch != step.epoch);
  writer.flag(first);
  if (first) writer.text(first_);
  writer.flag(now);
  if (now) writer.text(now_);
  if (first) known.first = step.number;
  known.step = step.number;
  known.epoch = step.epoch;
  const std::size_t begin = part * part_size_;
  const std::size_t end = std::min(begin + part_size_, exercises.size());
  writer.number<std::uint64_t>(end - begin);
  for (std::size_t i = begin; i < end; ++i) put_exercise(writer, exercises[i], here_);
  return writer.take();
}

std::unique_ptr<TrainingHelper> help_with_exercises(std::vector<TrainingTask> tasks,
                                                    const MultiGraphSettings& settings,
                                                    const Rng& rng, int threads) {
  return std::make_unique<ExerciseHelper>(std::move(tasks), settings, rng, threads);
}

}  // namespace emplace::learn
