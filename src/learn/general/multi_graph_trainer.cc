// Minimises the sum over problems of what each agent minimises, by gradient steps on parameters
// that all agents share.
//
// There are three phases, each with an Adam of its own whose rate falls to a tenth: the encoder
// alone, imitation of examples, practice. A step takes a few of the tasks, all of them in turn,
// adds up their gradients in the order of the tasks, and steps; in practice it does so several
// times on what was explored once, as PPO has it. A step costs what its tasks cost: a round of
// exploration each, and a gradient for every epoch.
//
// Invariants: the parameters of the first agent are the only ones that an optimizer changes, all
// others are set to them before an agent works; what comes of a task depends on the step's
// parameters and random numbers, on the task, and on what its agent has kept, nobody shares a
// context. So tasks may be worked on side by side, also by other ranks, and the policy depends
// neither on threads nor on ranks. A step is taken as a whole or not at all: stopping leaves a
// policy that is as good as the steps so far, and a state from which the steps that follow are
// those of a run that was not stopped.
//
// Zhou et al., "GDP: Generalized Device Placement for Dataflow Graphs", 2019 (GDP-batch).
#include "learn/general/multi_graph_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "base/error.h"

#include "learn/general/exercise_ranks.h"
#include "learn/general/policy_file.h"
#include "learn/nn/optimizer.h"
#include "learn/nn/single_thread.h"
#include "learn/train/run_state.h"

namespace emplace::learn {
namespace {

// What is known of a task from one step to the next, and what came of its last.
struct TaskRecord {
  std::string kept;  // by its agent; empty where that is new
  std::int64_t evaluations = 0;
  double likelihood = 0;
  double mean_seconds = 0;
  double fitting_share = 0;
};

class MultiGraphTrainer {
 public:
  MultiGraphTrainer(std::vector<TrainingTask> tasks, const MultiGraphSettings& settings,
                    const std::string& begin_from, std::string card, const Budget& budget,
                    const Rng& rng, const TrainingHooks& hooks)
      : settings_(settings),
        card_(std::move(card)),
        budget_(budget),
        rng_(rng),
        hooks_(hooks),
        exercises_(std::move(tasks), settings, rng) {
    for (std::size_t i = 0; i < exercises_.size(); ++i) {
      records_.push_back({.kept = {}, .evaluations = exercises_.task(i).context->evaluations()});
    }
    if (hooks.crew != nullptr) shared_.emplace(*hooks.crew, exercises_);
    if (!begin_from.empty()) {
      const PolicyFile file(begin_from, "the policy to begin from");
      require_same(file);
      file.load_into(shared_parameters());
    }
    if (hooks.resume.empty()) return;
    resumed_ = std::make_unique<StateReader>(hooks.resume, hooks.resume_name);
    load(*resumed_);
  }

  TrainedPolicy run() {
    TrainedPolicy result;
    Rng probe = rng_.split(3);
    const bool has_encoder = !exercises_.agent(0).encoder_gradient(probe).empty();
    bool has_examples = false;
    for (std::size_t i = 0; i < exercises_.size(); ++i) {
      has_examples = has_examples || exercises_.task(i).example.has_value();
    }
    result.whole =
        run_phase({ExerciseKind::kEncoder, "encoder", has_encoder ? settings_.encoder_steps : 0,
                   settings_.imitation_rate, 1}) &&
        run_phase({ExerciseKind::kImitation, "imitation",
                   has_examples ? settings_.imitation_steps : 0, settings_.imitation_rate, 1}) &&
        run_phase({ExerciseKind::kPractice, "practice", settings_.steps, settings_.learning_rate,
                   exercises_.agent(0).epochs()});
    result.policy = bytes();
    result.evaluations = evaluations();
    result.steps = taken_;
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Phase {
    ExerciseKind kind;
    std::string name;
    std::int64_t steps;
    double rate;
    std::int64_t epochs;
  };
  enum class Epoch { kStepped, kNothingLearned, kCutShort };

  // The first agent's are everybody's.
  Parameters& shared_parameters() { return exercises_.agent(0).parameters(); }
  std::string bytes() {
    return policy_bytes(settings_.kind, settings_.network, shared_parameters(),
                        card_ + fmt::format("steps taken: {}\n", taken_));
  }

  void require_same(const PolicyFile& file) const {
    const auto describe = [](const std::string& kind, const GeneralNetwork& network) {
      return fmt::format("{} with width {}, layers {}, superposition {}", kind, network.width,
                         network.layers, network.superposition);
    };
    if (file.kind() == settings_.kind && file.network() == settings_.network) return;
    fail_input("{}: a policy of {}; expected one of {}", file.file_name(),
               describe(file.kind(), file.network()), describe(settings_.kind, settings_.network));
  }

  std::int64_t evaluations() const {
    std::int64_t sum = 0;
    for (const TaskRecord& record : records_) sum += record.evaluations;
    return sum;
  }
  // Whether the budget, which is for all of them together, has a round left for these.
  bool affordable(const std::vector<std::size_t>& chosen) {
    if (!budget_.evaluations) return true;
    std::int64_t needed = evaluations();
    for (const std::size_t i : chosen) needed += exercises_.agent(i).round_size();
    return needed <= *budget_.evaluations;
  }

  // Which tasks a step works on, none twice: all of them in turn, in a new order each time. What is
  // left of one pass is followed by the first of the next.
  std::vector<std::size_t> next_tasks(Rng& rng) {
    const auto wanted =
        std::min<std::size_t>(records_.size(), static_cast<std::size_t>(settings_.tasks_per_step));
    std::vector<std::size_t> result;
    const auto is_new = [&](std::size_t task) {
      return std::find(result.begin(), result.end(), task) == result.end();
    };
    while (result.size() < wanted) {
      if (queue_.empty()) {
        queue_.resize(records_.size());
        std::iota(queue_.begin(), queue_.end(), std::size_t{0});
        rng.shuffle(queue_);
      }
      const auto next = std::find_if(queue_.begin(), queue_.end(), is_new);
      result.push_back(*next);
      queue_.erase(next);
    }
    return result;
  }

  // Whether all steps were taken.
  bool run_phase(const Phase& phase) {
    const std::int64_t number = phase_++;
    if (resumed_ != nullptr && number < resumed_->integer("phase")) return true;
    Optimizer optimizer({.learning_rate = phase.rate,
                         .final_share = 0.1,
                         .decay_steps = phase.steps * phase.epochs,
                         .clip_norm = settings_.clip_norm});
    std::int64_t step = 0;
    if (resumed_ != nullptr && number == resumed_->integer("phase")) {
      step = resumed_->integer("step");
      optimizer.load(*resumed_, "optimizer", shared_parameters().device());
    }
    bool whole = true;
    for (; step < phase.steps; ++step) {
      whole = take_step(phase, optimizer);
      if (!whole) break;
      report(phase.name, step + 1, phase.steps);
      save_now_and_then();
      if (seconds_since(state_saved_at_) >= hooks_.save_state_seconds) {
        keep_state(number, step + 1, optimizer);
      }
    }
    keep_state(number, step, optimizer);
    return whole;
  }

  // False where the budget is spent: then all is as it was before.
  bool take_step(const Phase& phase, Optimizer& optimizer) {
    if (budget_.spent(0)) return false;
    const Rng before = rng_;
    const std::vector<std::size_t> queue_before = queue_;
    chosen_ = next_tasks(rng_);
    const auto put_back = [&] {
      rng_ = before;
      queue_ = queue_before;
      return false;
    };
    if (phase.kind == ExerciseKind::kPractice && !affordable(chosen_)) return put_back();
    ExerciseStep step{.kind = phase.kind, .number = ++begun_, .rng = rng_.split(2)};
    step.first = shared_parameters().values();
    rng_.next();
    std::vector<Exercise> exercises;
    for (const std::size_t i : chosen_) {
      exercises.push_back(
          {.task = i, .kept = records_[i].kept, .evaluations = records_[i].evaluations});
      if (phase.kind == ExerciseKind::kImitation) {
        exercises.back().example = exercises_.task(i).example;
      }
    }
    for (; step.epoch < phase.epochs; ++step.epoch) {
      const Epoch epoch = take_epoch(step, exercises, optimizer);
      if (epoch == Epoch::kCutShort) return put_back();
      if (epoch == Epoch::kNothingLearned) break;
    }
    ++taken_;
    return true;
  }

  std::vector<std::optional<ExerciseOutcome>> outcomes_of(const ExerciseStep& step,
                                                          const std::vector<Exercise>& exercises) {
    if (shared_) return shared_->run(step, exercises, budget_);
    std::vector<std::optional<ExerciseOutcome>> outcomes(exercises.size());
    parallel_for_tensors(exercises.size(), budget_.threads, [&](std::size_t i) {
      outcomes[i] = exercises_.run(step, exercises[i], budget_);
    });
    return outcomes;
  }

  Epoch take_epoch(ExerciseStep& step, const std::vector<Exercise>& exercises,
                   Optimizer& optimizer) {
    step.now = step.epoch == 0 ? step.first : shared_parameters().values();
    const auto outcomes = outcomes_of(step, exercises);
    const bool complete = std::all_of(outcomes.begin(), outcomes.end(), [&](const auto& outcome) {
      return outcome && (outcome->learned || step.kind != ExerciseKind::kPractice);
    });
    if (!complete) return Epoch::kCutShort;
    std::vector<torch::Tensor> sum;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const ExerciseOutcome& outcome = *outcomes[i];
      if (step.epoch == 0) remember(exercises[i].task, outcome);
      if (!outcome.learned) continue;
      if (sum.empty()) {
        for (const torch::Tensor& tensor : outcome.gradient) sum.push_back(tensor.clone());
      } else {
        for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += outcome.gradient[p];
      }
    }
    if (sum.empty()) return Epoch::kNothingLearned;
    optimizer.step(shared_parameters().tensors(), std::move(sum));
    return Epoch::kStepped;
  }

  void remember(std::size_t task, const ExerciseOutcome& outcome) {
    records_[task] = {.kept = outcome.kept,
                      .evaluations = outcome.evaluations,
                      .likelihood = outcome.likelihood,
                      .mean_seconds = outcome.mean_seconds,
                      .fitting_share = outcome.fitting_share};
  }

  void report(const std::string& name, std::int64_t step, std::int64_t steps) const {
    if (!hooks_.on_step) return;
    TrainingReport report{.phase = name,
                          .step = step,
                          .steps = steps,
                          .taken = taken_,
                          .evaluations = evaluations(),
                          .seconds = seconds_before_ + seconds_since(began_at_)};
    double logarithms = 0;
    const auto count = static_cast<double>(chosen_.size());
    for (const std::size_t i : chosen_) {
      const TaskRecord& record = records_[i];
      report.likelihood += record.likelihood / count;
      report.fitting_share += record.fitting_share / count;
      if (record.mean_seconds > 0) {
        logarithms += std::log(record.mean_seconds / exercises_.task(i).reference_seconds);
      }
    }
    report.relative_time = std::exp(logarithms / count);
    hooks_.on_step(report);
  }

  static double seconds_since(Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
  }

  void save_now_and_then() {
    if (!hooks_.save || seconds_since(saved_at_) < hooks_.save_seconds) return;
    hooks_.save(bytes());
    saved_at_ = Clock::now();
  }

  // What another training must have in common to go on with this one's state.
  std::string signature() const {
    std::string text = fmt::format("{}, width {}, layers {}, superposition {}", settings_.kind,
                                   settings_.network.width, settings_.network.layers,
                                   settings_.network.superposition);
    text += fmt::format(
        ", {} steps of the encoder, {} of imitation at {}, {} of practice at {}, {} tasks each, "
        "fewer devices {}, clipped at {}",
        settings_.encoder_steps, settings_.imitation_steps, settings_.imitation_rate,
        settings_.steps, settings_.learning_rate, settings_.tasks_per_step, settings_.fewer_devices,
        settings_.clip_norm);
    for (std::size_t i = 0; i < exercises_.size(); ++i) text += "\n" + exercises_.task(i).name;
    return text;
  }

  // After `step` steps of the phase.
  void keep_state(std::int64_t phase, std::int64_t step, const Optimizer& optimizer) {
    if (!hooks_.save_state) return;
    StateWriter state;
    state.put("training", signature());
    state.put("phase", phase);
    state.put("step", step);
    state.put("taken", taken_);
    state.put("seconds", seconds_before_ + seconds_since(began_at_));
    put_rng(state, "rng", rng_.state());
    state.put("queue", std::vector<std::int64_t>(queue_.begin(), queue_.end()));
    for (const auto& [name, tensor] : shared_parameters().named()) {
      state.put("policy." + name, tensor);
    }
    optimizer.save(state, "optimizer");
    std::vector<std::int64_t> evaluated;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      state.put(fmt::format("task{}", i), records_[i].kept);
      evaluated.push_back(records_[i].evaluations);
    }
    state.put("evaluations", evaluated);
    hooks_.save_state(state.bytes());
    state_saved_at_ = Clock::now();
  }

  void load(const StateReader& state) {
    const std::string given = state.text("training");
    if (given != signature()) {
      fail_input(
          "{}: is of another training; expected one of the same policy, sizes, steps, rates and "
          "tasks",
          state.file_name());
    }
    taken_ = state.count("taken");
    seconds_before_ = seconds_of(state);
    rng_ = Rng(rng_of(state, "rng"));
    state.integer("phase", 0, kPhases);
    state.count("step");
    const std::vector<std::int64_t> evaluated =
        state.indices("evaluations", records_.size(), kMostEvaluations);
    queue_ = saved_queue(state);
    for (const auto& [name, tensor] : shared_parameters().named()) {
      state.load("policy." + name, tensor);
    }
    for (std::size_t i = 0; i < records_.size(); ++i) {
      records_[i].kept = state.text(fmt::format("task{}", i));
      if (!records_[i].kept.empty()) check_kept(state, i);
      // What came before the first step was evaluated again.
      records_[i].evaluations = evaluated[i];
    }
  }

  // Tasks, none twice.
  std::vector<std::size_t> saved_queue(const StateReader& state) const {
    const std::vector<std::int64_t> queue = state.integers("queue");
    const std::set<std::int64_t> distinct(queue.begin(), queue.end());
    if (distinct.size() != queue.size()) state.refuse("queue", "no task twice");
    state.indices("queue", queue.size(), records_.size());
    return {queue.begin(), queue.end()};
  }

  // Before a step hands it to whoever works on the task.
  void check_kept(const StateReader& state, std::size_t task) {
    const std::string name = fmt::format("{}: task{}", state.file_name(), task);
    exercises_.agent(task).load(StateReader(records_[task].kept, name));
  }

  // Of the encoder, of imitation, of practice.
  static constexpr std::int64_t kPhases = 3;
  static constexpr std::size_t kMostEvaluations = 1'000'000'000'000'000;

  const MultiGraphSettings& settings_;
  std::string card_;
  Budget budget_;
  Rng rng_;
  const TrainingHooks& hooks_;
  Exercises exercises_;
  std::optional<SharedExercises> shared_;  // where other ranks help
  std::vector<TaskRecord> records_;        // by task
  std::vector<std::size_t> queue_;
  std::vector<std::size_t> chosen_;       // the tasks of the last step
  std::uint64_t begun_ = 0;               // steps, of this run
  std::unique_ptr<StateReader> resumed_;  // what it went on from
  std::int64_t phase_ = 0;                // how many have begun
  std::int64_t taken_ = 0;                // steps, of all phases
  double seconds_before_ = 0;             // of the run that is gone on with
  Clock::time_point began_at_ = Clock::now();
  Clock::time_point saved_at_ = began_at_;
  Clock::time_point state_saved_at_ = began_at_;
};

}  // namespace

TrainedPolicy train_on_graphs(std::vector<TrainingTask> tasks, const MultiGraphSettings& settings,
                              const std::string& begin_from, const std::string& card,
                              const Budget& budget, const Rng& rng, const TrainingHooks& hooks) {
  return MultiGraphTrainer(std::move(tasks), settings, begin_from, card, budget, rng, hooks).run();
}

}  // namespace emplace::learn
