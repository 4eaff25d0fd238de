#include "run/train.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/read_bytes.h"

#include "placer/run.h"

#include "placers/all.h"

#include "io/training_curves.h"
#include "learn/backend.h"
#include "run/learning_files.h"
#include "run/training_tasks.h"

namespace emplace {
namespace {

constexpr const char* kNeededBy = "training a policy";

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
  PolicyTraining(const TrainOptions& options, Say say)
      : options_(options),
        say_(std::move(say)),
        settings_(trainer_settings(options)),
        checkpoint_(files_of(options)),
        course_(options),
        backend_(learn::backend(kNeededBy)) {
    check();
    if (options_.from.empty()) return;
    begin_from_ = read_bytes(options_.from);
    const learn::PolicyDescription start = backend_.describe_policy(begin_from_, options_.from);
    if (start.kind != settings_.kind) {
      fail_input("{}: a policy of {}; expected one of {}", options_.from, start.kind,
                 settings_.kind);
    }
    settings_.network = start.network;
  }

  TrainResult run() {
    tell("reading graphs");
    const std::vector<NamedProblem> problems =
        cross(list_models(options_.graphs), list_clusters(options_.clusters), options_.memory,
              options_.budget.threads);
    tell(fmt::format("preparing {} tasks", problems.size()));
    std::vector<learn::TrainingTask> tasks(problems.size());
    parallel_for(problems.size(), options_.budget.threads,
                 [&](std::size_t i) { tasks[i] = prepare(problems[i]); });
    if (options_.budget.spent(0)) {
      fail(ErrorKind::kSystem, "stopped before the first step: there is no policy yet");
    }
    TrainResult result{.policy = {}, .tasks = problems.size()};
    learn::TrainedPolicy trained =
        backend_.train_on_graphs(std::move(tasks), settings_, begin_from_, card(problems.size()),
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
    return hooks;
  }

  // What would only be noticed after long preparations.
  void check() const {
    if (options_.graphs.empty() || options_.clusters.empty()) {
      fail_option("graphs and clusters are missing: expected what to train on");
    }
    if (settings_.network.width % 2 != 0) {
      fail_option("width {}: expected an even number", settings_.network.width);
    }
    if ((options_.imitate == "none") != (settings_.imitation_steps == 0)) {
      fail_option("a placer to imitate and steps of imitation: expected both or neither");
    }
    if (options_.imitate != "none") all_placers().make(MethodSpec::parse(options_.imitate));
    backend_.require_device(settings_.device);
  }

  RunResult run_on(const std::shared_ptr<const Simulator>& simulator, const std::string& spec,
                   const Budget& budget) const {
    PlaceContext context(simulator);
    return run_placer(all_placers(), context,
                      {.placer = MethodSpec::parse(spec), .seed = options_.seed}, budget);
  }

  // The reference is what the expert does; the example, what the placer to imitate does.
  learn::TrainingTask prepare(const NamedProblem& problem) const {
    learn::TrainingTask task;
    task.name = problem.name;
    task.context = std::make_shared<PlaceContext>(problem.problem);
    Budget budget = options_.budget;
    budget.threads = 1;
    const auto& simulator = task.context->evaluator().simulator();
    task.reference_seconds =
        static_cast<double>(run_on(simulator, "expert", budget).evaluation.step) * 1e-9;
    if (options_.imitate == "none" || settings_.imitation_steps == 0) return task;
    budget.evaluations = options_.imitate_evaluations;
    const RunResult result =
        with_context(problem.name, [&] { return run_on(simulator, options_.imitate, budget); });
    if (!result.evaluation.fits()) return task;
    const Placement ordered = backend_.in_order(*problem.problem, result.result.placement);
    // Where links differ, devices that are alike are not quite.
    Evaluator& evaluator = task.context->evaluator();
    const bool worse = evaluator.evaluate(result.result.placement) < evaluator.evaluate(ordered);
    task.example = worse ? result.result.placement : ordered;
    return task;
  }

  std::string card(std::size_t tasks) const {
    return fmt::format(
        "policy: {}{}\nwidth {}, layers {}, superposition {}\ngraphs: {}\nclusters: {}\n"
        "memory on each device, of what a graph needs on one: {}\ntasks: {}\n"
        "steps: {} of the encoder, {} of imitation of {} ({} evaluations), {} of practice\n"
        "tasks in a step: {}, learning rate: {}\nseed: {}\n",
        settings_.kind, options_.from.empty() ? "" : ", from " + options_.from,
        settings_.network.width, settings_.network.layers, settings_.network.superposition,
        fmt::join(options_.graphs, " "), fmt::join(options_.clusters, " "),
        options_.memory.empty() ? "as the cluster has it"
                                : fmt::format("{}", fmt::join(options_.memory, ", ")),
        tasks, settings_.encoder_steps, settings_.imitation_steps, options_.imitate,
        options_.imitate_evaluations, settings_.steps, settings_.tasks_per_step,
        settings_.learning_rate, options_.seed);
  }

  const TrainOptions& options_;
  Say say_;
  learn::MultiGraphSettings settings_;
  CheckpointFile checkpoint_;
  Course course_;
  const learn::Backend& backend_;
  std::string begin_from_;
};

}  // namespace

learn::MultiGraphSettings trainer_settings(const TrainOptions& options) {
  OptionValues values = options.settings;
  values.emplace_back("policy", options.policy);
  values.emplace_back("device", options.device);
  return learn::MultiGraphSettings::schema().read(values);
}

TrainResult train_policy(const TrainOptions& options, const Say& say) {
  return PolicyTraining(options, say).run();
}

}  // namespace emplace
