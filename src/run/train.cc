#include "run/train.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

#include "io/training_curves.h"
#include "run/learning_files.h"
#include "run/training_preparation.h"

namespace emplace {
namespace {

using Say = std::function<void(const std::string&)>;

std::string describe(const learn::TrainingReport& report) {
  std::string line = fmt::format("{} step {} of {}", report.phase, report.step, report.steps);
  if (report.phase == "imitation") {
    line += fmt::format(": examples at likelihood {:.3f}", report.likelihood);
  }
  if (report.phase == "practice") {
    line += fmt::format(": samples at {:.3f} times the expert's step, {:.0f} % fit",
                        report.relative_time, 100 * report.fitting_share);
  }
  return line;
}

LearningSettings files_of(const TrainOptions& options) {
  return {.curves = options.curves,
          .checkpoint = options.checkpoint,
          .checkpoint_seconds = options.checkpoint_seconds,
          .resume = options.resume};
}

// The course of a training, also as a folder. What cannot be written does not end the training.
class Course {
 public:
  explicit Course(const TrainOptions& options) {
    if (options.curves.empty()) return;
    curves_.emplace(options.curves,
                    options.resume ? CurveFolder::Begin::kGoOn : CurveFolder::Begin::kAnew);
  }

  void add(const learn::TrainingReport& report) {
    PolicyPoint point{.step = report.taken,
                      .evaluations = report.evaluations,
                      .seconds = report.seconds,
                      .phase = report.phase};
    if (report.phase == "imitation") point.likelihood = report.likelihood;
    if (report.phase == "practice") {
      point.relative_time = report.relative_time;
      point.fitting_share = report.fitting_share;
    }
    if (curves_ && !failure_) {
      try {
        curves_->add(point);
      } catch (const Error& error) {
        failure_ = error.what();
      }
    }
    points_.push_back(std::move(point));
  }

  std::vector<PolicyPoint> take_points() { return std::move(points_); }

  const std::optional<std::string>& failure() const { return failure_; }

 private:
  std::optional<PolicyCurves> curves_;
  std::optional<std::string> failure_;
  std::vector<PolicyPoint> points_;
};

class PolicyTraining {
 public:
  PolicyTraining(const TrainOptions& options, Say say, dist::Crew* crew)
      : options_(options),
        say_(std::move(say)),
        crew_(crew),
        preparation_(options),
        checkpoint_(files_of(options)),
        course_(options) {}

  TrainResult run() {
    tell("reading graphs");
    std::vector<learn::TrainingTask> tasks = preparation_.read();
    if (crew_ != nullptr) crew_->expect(preparation_.fingerprint(tasks));
    tell(fmt::format("preparing {} tasks", tasks.size()));
    preparation_.prepare(tasks, crew_);
    if (options_.budget.spent(0)) {
      fail(ErrorKind::kSystem, "stopped before the first step: there is no policy yet");
    }
    TrainResult result{.policy = {}, .tasks = tasks.size()};
    learn::TrainedPolicy trained = preparation_.backend().train_on_graphs(
        std::move(tasks), preparation_.settings(), preparation_.begin_from(), card(result.tasks),
        options_.budget, Rng(options_.seed), hooks(result));
    result.policy = std::move(trained.policy);
    result.evaluations = trained.evaluations;
    result.steps = trained.steps;
    result.finished = trained.whole;
    result.points = course_.take_points();
    for (const auto& failure : {checkpoint_.failure(), course_.failure()}) {
      if (failure) result.warnings.push_back(*failure);
    }
    return result;
  }

 private:
  void tell(const std::string& line) const {
    if (say_) say_(line);
  }

  // `result` hears of the last step.
  learn::TrainingHooks hooks(TrainResult& result) {
    learn::TrainingHooks hooks{.on_step = [this, &result](const learn::TrainingReport& report) {
      tell(describe(report));
      course_.add(report);
      if (report.phase != "practice") return;
      result.relative_time = report.relative_time;
      result.fitting_share = report.fitting_share;
    }};
    hooks.save = options_.on_save;
    if (checkpoint_.wanted()) {
      hooks.save_state = [this](std::string_view bytes) { checkpoint_.save(bytes); };
    }
    hooks.save_state_seconds = checkpoint_.seconds();
    hooks.resume = checkpoint_.resumed();
    hooks.resume_name = checkpoint_.path();
    hooks.crew = crew_;
    return hooks;
  }

  std::string card(std::size_t tasks) const {
    const learn::MultiGraphSettings& settings = preparation_.settings();
    return fmt::format(
        "policy: {}{}\nwidth {}, layers {}, superposition {}\ngraphs: {}\nclusters: {}\n"
        "memory on each device, of what a graph needs on one: {}\ntasks: {}\n"
        "steps: {} of the encoder, {} of imitation of {} ({} evaluations), {} of practice\n"
        "tasks in a step: {}, learning rate: {}\nseed: {}\n",
        settings.kind, options_.from.empty() ? "" : ", from " + options_.from,
        settings.network.width, settings.network.layers, settings.network.superposition,
        fmt::join(options_.graphs, " "), fmt::join(options_.clusters, " "),
        options_.memory.empty() ? "as the cluster has it"
                                : fmt::format("{}", fmt::join(options_.memory, ", ")),
        tasks, settings.encoder_steps, settings.imitation_steps, options_.imitate,
        options_.imitate_evaluations, settings.steps, settings.tasks_per_step,
        settings.learning_rate, options_.seed);
  }

  const TrainOptions& options_;
  Say say_;
  dist::Crew* crew_;
  TrainingPreparation preparation_;
  CheckpointFile checkpoint_;
  Course course_;
};

}  // namespace

TrainResult train_policy(const TrainOptions& options, const Say& say, dist::Crew* crew) {
  return PolicyTraining(options, say, crew).run();
}

void serve_training(const TrainOptions& options, dist::Member& member) {
  const TrainingPreparation preparation(options);
  std::vector<learn::TrainingTask> tasks = preparation.read();
  std::unique_ptr<learn::TrainingHelper> helper;
  const std::uint64_t fingerprint = preparation.fingerprint(tasks);
  member.serve(fingerprint, [&](dist::Reader& task, dist::Line& line) {
    const auto kind = task.number<std::uint8_t>();
    if (kind == static_cast<std::uint8_t>(learn::TrainingRankTask::kPreparation)) {
      return preparation.help(task, line, tasks);
    }
    if (helper == nullptr) {
      helper = preparation.backend().help_to_train(tasks, preparation.settings(), Rng(options.seed),
                                                   options.budget.threads);
    }
    return helper->work(task, line);
  });
}

}  // namespace emplace
