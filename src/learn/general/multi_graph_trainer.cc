// Minimises the sum over problems of what each agent minimises, by gradient steps on parameters
// that all agents share.
//
// There are three phases, each with an Adam of its own whose rate falls to a tenth: the encoder
// alone, imitation of examples, practice. A step takes a few of the tasks, all of them in turn,
// adds up their gradients in the order of the tasks, and steps; in practice it does so several
// times on what was explored once, as PPO has it. A step costs what its tasks cost: a round of
// exploration each, and a gradient for every epoch.
//
// Invariants: before any agent works its parameters are set to those of the first agent, the only
// ones that an optimizer changes; a task's random numbers depend on the step and the task alone,
// and nobody shares a context. So tasks may be worked on side by side, and the policy does not
// depend on threads. Stopping between steps leaves a policy that is as good as the steps so far,
// and a state from which the steps that follow are those of a run that was not stopped.
//
// Zhou et al., "GDP: Generalized Device Placement for Dataflow Graphs", 2019 (GDP-batch).
#include "learn/general/multi_graph_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

#include <fmt/core.h>

#include "base/error.h"

#include "learn/features/device_view.h"
#include "learn/general/agent.h"
#include "learn/general/kinds.h"
#include "learn/general/policy_file.h"
#include "learn/nn/optimizer.h"
#include "learn/nn/single_thread.h"
#include "learn/train/state.h"

namespace emplace::learn {
namespace {

// One problem, its agent, and all that has to do with them alone, so that tasks can be worked
// on side by side and come out the same.
struct TaskState {
  TrainingTask task;
  GeneralAgentPtr agent;
  std::unique_ptr<Environment> environment;
  std::vector<torch::Tensor> gradient;
  TrainingPoint point;
  double likelihood = 0;
  bool learned = false;

  std::size_t num_devices() const { return environment->problem().num_devices(); }
};

class MultiGraphTrainer {
 public:
  MultiGraphTrainer(std::vector<TrainingTask> tasks, const MultiGraphSettings& settings,
                    const std::string& begin_from, std::string card, const Budget& budget,
                    const Rng& rng, const TrainingHooks& hooks)
      : settings_(settings), card_(std::move(card)), budget_(budget), rng_(rng), hooks_(hooks) {
    states_.resize(tasks.size());
    parallel_for_tensors(states_.size(), budget.threads, [&](std::size_t i) {
      TaskState& state = states_[i];
      state.task = std::move(tasks[i]);
      Rng weights = rng.split(1);  // the same for all
      state.agent = make_agent(settings.kind, state.task.context->problem(), settings.network,
                               settings.device, weights);
      Budget own = budget;
      own.threads = 1;
      state.environment = std::make_unique<Environment>(*state.task.context, own, settings.kind);
    });
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
    const bool has_encoder = !states_.front().agent->encoder_gradient(probe).empty();
    const bool has_examples =
        std::any_of(states_.begin(), states_.end(),
                    [](const TaskState& state) { return state.task.example.has_value(); });
    result.whole =
        run_phase("encoder", has_encoder ? settings_.encoder_steps : 0, settings_.imitation_rate, 1,
                  [&](TaskState& state, Rng& rng, bool) { return learn_encoder(state, rng); }) &&
        run_phase("imitation", has_examples ? settings_.imitation_steps : 0,
                  settings_.imitation_rate, 1,
                  [&](TaskState& state, Rng& rng, bool) { return imitate(state, rng); }) &&
        run_phase(
            "practice", settings_.steps, settings_.learning_rate, states_.front().agent->epochs(),
            [&](TaskState& state, Rng& rng, bool first) { return practise(state, rng, first); });
    result.policy = bytes();
    result.evaluations = evaluations();
    result.steps = taken_;
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // The first agent's are everybody's.
  Parameters& shared_parameters() { return states_.front().agent->parameters(); }
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
    for (const TaskState& state : states_) sum += state.task.context->evaluations();
    return sum;
  }
  // Whether the budget, which is for all of them together, has a round left for these.
  bool affordable(const std::vector<std::size_t>& chosen) const {
    if (!budget_.evaluations) return true;
    std::int64_t needed = evaluations();
    for (const std::size_t i : chosen) needed += states_[i].agent->round_size();
    return needed <= *budget_.evaluations;
  }

  bool learn_encoder(TaskState& state, Rng& rng) {
    state.gradient = state.agent->encoder_gradient(rng);
    return !state.gradient.empty();
  }

  bool imitate(TaskState& state, Rng& rng) {
    if (!state.task.example) return false;
    const std::vector<DeviceId> used = devices_of(*state.task.example);
    state.agent->use(used);
    Imitation imitation = state.agent->imitate(*state.task.example, *state.environment, rng);
    state.gradient = std::move(imitation.gradient);
    state.likelihood = imitation.likelihood;
    return true;
  }

  static std::vector<DeviceId> devices_of(const Placement& placement) {
    std::vector<DeviceId> used(placement.begin(), placement.end());
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    return used;
  }

  bool practise(TaskState& state, Rng& rng, bool first) {
    if (first) {
      const std::size_t all = state.num_devices();
      const bool fewer = rng.chance(settings_.fewer_devices);
      const std::size_t count = fewer ? 1 + rng.below(all) : all;
      state.agent->use(state.agent->views().fastest(count));
      state.point = {};
      state.learned = state.agent->explore(*state.environment, rng, state.point);
    }
    if (state.learned) state.gradient = state.agent->gradient();
    return state.learned;
  }

  // Which tasks a step works on, none twice: all of them in turn, in a new order each time. What is
  // left of one pass is followed by the first of the next.
  std::vector<std::size_t> next_tasks(Rng& rng) {
    const auto wanted =
        std::min<std::size_t>(states_.size(), static_cast<std::size_t>(settings_.tasks_per_step));
    std::vector<std::size_t> result;
    const auto is_new = [&](std::size_t task) {
      return std::find(result.begin(), result.end(), task) == result.end();
    };
    while (result.size() < wanted) {
      if (queue_.empty()) {
        queue_.resize(states_.size());
        std::iota(queue_.begin(), queue_.end(), std::size_t{0});
        rng.shuffle(queue_);
      }
      const auto next = std::find_if(queue_.begin(), queue_.end(), is_new);
      result.push_back(*next);
      queue_.erase(next);
    }
    return result;
  }

  // Whether all steps were taken. `work` leaves a task's gradient, or says that there is none.
  template <class Work>
  bool run_phase(const std::string& name, std::int64_t steps, double rate, std::int64_t epochs,
                 const Work& work) {
    const std::int64_t phase = phase_++;
    if (resumed_ != nullptr && phase < resumed_->integer("phase")) return true;
    Optimizer optimizer({.learning_rate = rate,
                         .final_share = 0.1,
                         .decay_steps = steps * epochs,
                         .clip_norm = settings_.clip_norm});
    std::int64_t step = 0;
    if (resumed_ != nullptr && phase == resumed_->integer("phase")) {
      step = resumed_->integer("step");
      optimizer.load(*resumed_, "optimizer", shared_parameters().device());
    }
    const bool whole = take_steps(name, phase, step, steps, epochs, optimizer, work);
    keep_state(phase, step, optimizer);
    return whole;
  }

  template <class Work>
  bool take_steps(const std::string& name, std::int64_t phase, std::int64_t& step,
                  std::int64_t steps, std::int64_t epochs, Optimizer& optimizer, const Work& work) {
    for (; step < steps; ++step) {
      if (budget_.spent(0)) return false;
      const Rng before = rng_;
      const std::vector<std::size_t> queue_before = queue_;
      const std::vector<std::size_t> chosen = next_tasks(rng_);
      // As if they had not been chosen, for whoever goes on.
      const auto put_back = [&] {
        rng_ = before;
        queue_ = queue_before;
        return false;
      };
      if (name == "practice" && !affordable(chosen)) return put_back();
      const Rng of_step = rng_.split(2);
      rng_.next();
      bool any = false;
      for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
        any = take_step(chosen, of_step, epoch, optimizer, work);
        if (!any) break;
      }
      if (!any && budget_.spent(0)) return put_back();
      ++taken_;
      report(name, step + 1, steps, chosen);
      save_now_and_then();
      if (seconds_since(state_saved_at_) >= hooks_.save_state_seconds) {
        keep_state(phase, step + 1, optimizer);
      }
    }
    return true;
  }

  template <class Work>
  bool take_step(const std::vector<std::size_t>& chosen, const Rng& rng, std::int64_t epoch,
                 Optimizer& optimizer, const Work& work) {
    const std::vector<torch::Tensor> values = shared_parameters().values();
    std::vector<char> learned(chosen.size());
    parallel_for_tensors(chosen.size(), budget_.threads, [&](std::size_t i) {
      TaskState& state = states_[chosen[i]];
      state.agent->parameters().assign(values);
      Rng own = rng.split(chosen[i]);
      learned[i] = work(state, own, epoch == 0) ? 1 : 0;
    });
    std::vector<torch::Tensor> sum;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (learned[i] == 0) continue;
      const std::vector<torch::Tensor>& gradient = states_[chosen[i]].gradient;
      if (sum.empty()) {
        for (const torch::Tensor& tensor : gradient) sum.push_back(tensor.clone());
      } else {
        for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += gradient[p];
      }
    }
    if (sum.empty()) return false;
    optimizer.step(shared_parameters().tensors(), std::move(sum));
    return true;
  }

  void report(const std::string& name, std::int64_t step, std::int64_t steps,
              const std::vector<std::size_t>& chosen) const {
    if (!hooks_.on_step) return;
    TrainingReport report{.phase = name,
                          .step = step,
                          .steps = steps,
                          .taken = taken_,
                          .evaluations = evaluations(),
                          .seconds = seconds_before_ + seconds_since(began_at_)};
    double logarithms = 0;
    for (const std::size_t i : chosen) {
      const TaskState& state = states_[i];
      report.likelihood += state.likelihood / static_cast<double>(chosen.size());
      report.fitting_share += state.point.fitting_share / static_cast<double>(chosen.size());
      if (state.point.mean_seconds > 0) {
        logarithms += std::log(state.point.mean_seconds / state.task.reference_seconds);
      }
    }
    report.relative_time = std::exp(logarithms / static_cast<double>(chosen.size()));
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
    for (const TaskState& state : states_) text += "\n" + state.task.name;
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
    state.put("rng", std::vector<std::int64_t>(rng_.state().begin(), rng_.state().end()));
    state.put("queue", std::vector<std::int64_t>(queue_.begin(), queue_.end()));
    for (const auto& [name, tensor] : shared_parameters().named()) {
      state.put("policy." + name, tensor);
    }
    optimizer.save(state, "optimizer");
    std::vector<std::int64_t> evaluated;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      StateWriter own;
      states_[i].agent->save(own);
      state.put(fmt::format("task{}", i), own.bytes());
      evaluated.push_back(states_[i].task.context->evaluations());
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
    taken_ = state.integer("taken");
    seconds_before_ = state.real("seconds");
    const std::vector<std::int64_t> words = state.integers("rng");
    const std::vector<std::int64_t> evaluated = state.integers("evaluations");
    Rng::State random{};
    if (words.size() != random.size() || evaluated.size() != states_.size()) {
      fail_input("{}: is damaged", state.file_name());
    }
    std::copy(words.begin(), words.end(), random.begin());
    rng_ = Rng(random);
    const std::vector<std::int64_t> queue = state.integers("queue");
    queue_.assign(queue.begin(), queue.end());
    for (const auto& [name, tensor] : shared_parameters().named()) {
      state.load("policy." + name, tensor);
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      states_[i].agent->load(StateReader(state.text(fmt::format("task{}", i)), state.file_name()));
      // What came before the first step was evaluated again.
      PlaceContext& context = *states_[i].task.context;
      context.evaluator().count(evaluated[i] - context.evaluations());
    }
  }

  const MultiGraphSettings& settings_;
  std::string card_;
  Budget budget_;
  Rng rng_;
  const TrainingHooks& hooks_;
  std::vector<TaskState> states_;
  std::vector<std::size_t> queue_;
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
