// Rank 0's side is a job without an end (dist/crew.h): a task comes up when its controller is free
// and the parameters that it is to begin from are known. What comes back is kept until its turn,
// which under time is at once. `mutex_` guards all of that: results come on the crew's thread.
#include "learn/controllers/controllers.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"

#include "learn/controllers/desk.h"
#include "learn/controllers/keeper.h"
#include "learn/controllers/progress.h"
#include "learn/controllers/round.h"
#include "learn/controllers/teams.h"
#include "learn/methods/method.h"
#include "learn/nn/deadline.h"
#include "learn/nn/optimizer.h"
#include "learn/nn/single_thread.h"
#include "learn/nn/tensor_messages.h"
#include "learn/policies/policy.h"
#include "learn/train/run_state.h"

namespace emplace::learn {
namespace {

// Of this process's runs; other ranks have another memory of them.
std::uint64_t next_run() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

class Training {
 public:
  // `began_with` stands for the seed; `rng` is for what follows.
  Training(const SamplingSystem& system, SamplingParts parts, Environment& environment,
           const Rng& began_with, const Rng& rng, const LearningRun& run)
      : system_(system),
        policy_(*parts.policy),
        batch_(parts.learner->batch()),
        environment_(environment),
        learning_(environment.context().learning()),
        optimizer_(gradient_learner(parts).steps()),
        parts_(std::move(parts)),
        in_order_(environment.budget().evaluations.has_value()),
        state_(environment, run.key, began_with),
        run_number_(next_run()) {
    progress_.controllers.resize(static_cast<std::size_t>(system.controllers));
    for (std::size_t i = 0; i < progress_.controllers.size(); ++i) {
      progress_.controllers[i].rng = (i == 0 ? rng : rng.split(i)).state();
    }
  }

  // Goes on from a checkpoint, before `run`.
  void load(const StateReader& state) {
    state_.load(state);
    for (const auto& [name, tensor] : policy_.parameters().named()) {
      state.load("policy." + name, tensor);
    }
    optimizer_.load(state, "optimizer", policy_.parameters().device());
    progress_.load(state, policy_.parameters().tensors());
    if (!in_order_) progress_.published.clear();
    next_ = first_ = progress_.applied;
  }

  // `address` goes before what the others are told; the budget is for rounds that are done here.
  void run(dist::Crew& crew, const Teams& teams, const std::string& address, Desk& desk,
           const Budget& own) {
    crew_ = &crew;
    teams_ = teams;
    allowance_ = environment_.affordable(std::numeric_limits<std::int64_t>::max());
    note_optimum();
    const struct End {
      Desk& desk;
      ~End() { desk.close_shards(); }
    } end{desk};
    if (!in_order_ && teams.count() > 1) {
      shards_ = &desk.open_shards(crew, run_number_, static_cast<std::size_t>(teams.count()));
      shards_->begin(policy_.parameters(), progress_.epoch.number, optimizer_);
    }
    publish();
    {
      std::optional<Keeper> keeper;
      if (learning_.save) keeper.emplace(learning_.save_seconds, [&] { save(); });
      run_rounds(address, desk, own);
    }
    if (failure_) throw *failure_;
    save();
  }

 private:
  // Task i of the job is round first_ + i.
  void run_rounds(const std::string& address, Desk& desk, const Budget& own) {
    dist::Job job;
    job.more = [&] { return begin_next(); };
    job.takes = [&](int rank) { return teams_.is_controller(rank, present_); };
    job.describe_to = [&](std::size_t task, int rank) {
      dist::Writer writer;
      put(writer, task_of(first_ + task, rank));
      return address + writer.take();
    };
    job.here = [&](std::size_t task) {
      {
        const std::lock_guard lock(mutex_);
        own_rounds_.insert(first_ + task);
      }
      return desk.run(task_of(first_ + task, 0), own, *crew_);
    };
    job.accept = [&](std::size_t task, dist::Reader& reader) { accept(first_ + task, reader); };
    job.failed = [&](std::size_t, const Error& error) {
      const std::lock_guard lock(mutex_);
      failure_ = error;
    };
    job.on_lost = [&](int rank) {
      if (shards_ == nullptr || !shards_->take_back(rank)) return;
      crew_->tell(dist::Writer().numbers(shards_->owners()).take());
    };
    job.cancelled = environment_.budget().cancelled;
    crew_->run(job);
  }

  // Of everything but rounds that are not over. From the thread that saves, or when there is none.
  void save() {
    if (!learning_.save) return;
    // Owners tell of their shards by themselves, so this is not of one moment.
    StateWriter parameters;
    const std::uint64_t epoch = shards_ != nullptr ? shards_->save(parameters) : 0;
    StateWriter state;
    {
      const std::lock_guard lock(mutex_);
      if (shards_ != nullptr && epoch != progress_.epoch.number) return;  // the next one, then
      if (shards_ != nullptr) state = std::move(parameters);
      RunState::Reached reached = state_.reached();
      if (in_order_ && before_unlearned_) {
        state = before_unlearned_->state;
        reached = before_unlearned_->reached;
      } else {
        put_training(state);
      }
      state_.save(state, reached);
    }
    learning_.save(state.bytes());
  }

  void put_training(StateWriter& state) const {
    progress_.save(state);
    if (shards_ != nullptr) return;
    for (const auto& [name, tensor] : policy_.parameters().named()) {
      state.put("policy." + name, tensor);
    }
    optimizer_.save(state, "optimizer");
  }

  std::size_t controller_of(std::size_t number) const {
    return in_order_ ? number % progress_.controllers.size() : controller_by_round_.at(number);
  }

  // What rounds begin from, from now on.
  void publish() {
    if (shards_ != nullptr) return;
    dist::Writer writer;
    put_tensors(writer, policy_.parameters().tensors());
    const std::size_t version = in_order_ ? progress_.applied : 0;
    progress_.published[version] = std::make_shared<const std::string>(writer.take());
    progress_.epochs[version] = progress_.epoch;
  }

  void note_optimum() {
    if (!progress_.optimal_after && environment_.context().incumbent().optimal()) {
      progress_.optimal_after = progress_.applied;
    }
  }

  // Whether there is a round to do now, which is then the next one's.
  bool begin_next() {
    const std::lock_guard lock(mutex_);
    const std::size_t wide = progress_.controllers.size();
    // The gradients that the round begins after.
    std::size_t from = !in_order_ || next_ < wide ? 0 : next_ - wide + 1;
    // Whoever goes on may know of the last parameters alone.
    if (in_order_) from = std::max(from, progress_.published.begin()->first);
    const std::optional<std::size_t>& proven = progress_.optimal_after;
    const bool optimal =
        in_order_ ? proven && *proven <= from : environment_.context().incumbent().optimal();
    if (failure_ || allowance_ <= 0 || environment_.budget().spent(0) || optimal) return false;
    std::size_t controller = next_ % wide;
    if (in_order_) {
      // Its controller's last gradient has been applied.
      if (next_ >= wide && progress_.applied < next_ - wide + 1) return false;
    } else {
      std::size_t busy = 0;
      for (; busy < wide && progress_.controllers[controller].busy; ++busy) {
        controller = (controller + 1) % wide;
      }
      if (busy == wide) return false;
      controller_by_round_[next_] = controller;
    }
    RoundTask task{.run = run_number_, .number = next_};
    Epoch epoch = progress_.epoch;
    task.samples = std::min(allowance_, batch_);
    task.learns = task.samples == batch_;
    allowance_ -= task.samples;
    task.rng = progress_.controllers[controller].rng;
    progress_.controllers[controller].busy = true;
    if (shards_ == nullptr) {
      task.parameters = progress_.published.at(from);
      if (in_order_) epoch = progress_.epochs.at(from);
    }
    task.epoch = epoch.number;
    // A policy that begins anew has a baseline that knows nothing.
    if (progress_.controllers[controller].memory_of == epoch.number) {
      task.memory = progress_.controllers[controller].memory;
    }
    task.updates = next_ - std::min(next_, epoch.began);
    tasks_.emplace(next_, std::move(task));
    ++next_;
    return true;
  }

  // When it is told: time and owners are those of now.
  RoundTask task_of(std::size_t number, int rank) {
    const std::lock_guard lock(mutex_);
    RoundTask task = tasks_.at(number);
    const Budget& budget = environment_.budget();
    if (budget.seconds) task.seconds = std::max(0.0, *budget.seconds - budget.elapsed_seconds());
    if (shards_ != nullptr) task.owners = shards_->owners();
    task.workers = teams_.workers_of(rank, present_);
    return task;
  }

  void accept(std::size_t number, dist::Reader& reader) {
    const SingleThread single_thread;
    RoundResult result =
        take_round_result(reader, policy_.parameters().tensors(), environment_.problem());
    bool is_own = false;
    {
      const std::lock_guard lock(mutex_);
      is_own = own_rounds_.erase(number) > 0;
    }
    if (!is_own) check(result);
    const std::lock_guard lock(mutex_);
    const auto count = static_cast<std::int64_t>(result.outcomes.size());
    const std::int64_t asked = tasks_.at(number).samples;
    if (count > asked || (result.in_time && count < asked)) {
      fail_input("a round has {} outcomes; expected {}", count, asked);
    }
    if (shards_ != nullptr && result.rank > 0 && result.rank < crew_->size()) {
      shards_->hand_over(static_cast<std::size_t>(teams_.of(result.rank)), result.rank);
    }
    results_.emplace(number, std::move(result));
    if (!in_order_) {
      apply(number);
      return;
    }
    while (results_.contains(progress_.applied)) apply(progress_.applied);
  }

  // The answer must be one, whoever found it.
  void check(const RoundResult& result) {
    if (result.best == result.outcomes.size()) return;
    const SampleOutcome& best = result.outcomes[result.best];
    const Evaluation value{best.step, best.overflow};
    if (environment_.context().evaluator().measures()) return check_measured(value);
    const std::optional<Evaluation> known = environment_.context().incumbent().value();
    if (known && !(value < *known)) return;
    Evaluator& evaluator = environment_.context().evaluator();
    const Evaluation own = evaluator.evaluate_uncounted(result.placement);
    if (own != value) {
      fail_input("it values a placement at {} ns, which takes {} ns here", best.step, own.step);
    }
  }

  void apply(std::size_t number) {
    RoundResult result = std::move(results_.at(number));
    const RoundTask task = std::move(tasks_.at(number));
    Controller& controller = progress_.controllers[controller_of(number)];
    results_.erase(number);
    tasks_.erase(number);
    controller_by_round_.erase(number);
    controller.rng = result.rng;
    const bool is_of_now = result.epoch == progress_.epoch.number;
    controller.memory = std::move(result.memory);
    controller.memory_of = result.epoch;
    controller.busy = false;
    const bool learned = task.learns && result.in_time;
    // What was cut short is not what a longer run would do: it does not count for whoever goes on.
    if (!learned && in_order_ && learning_.save && !before_unlearned_) {
      before_unlearned_.emplace();
      before_unlearned_->reached = state_.reached();
      put_training(before_unlearned_->state);
    }
    environment_.hear(result.outcomes, result.best, std::move(result.placement));
    if (learned && is_of_now) {
      if (!result.gradient.empty()) {
        result.report.gradient_norm = optimizer_.step(policy_.parameters(), result.gradient);
      }
      restart_if_decided(result, controller);
    }
    ++progress_.applied;
    note_optimum();
    if (learned) ++progress_.rounds;
    report(result, learned);
    publish();
    const std::size_t wide = progress_.controllers.size();
    if (in_order_ && progress_.applied >= wide) {
      progress_.forget_before(progress_.applied - wide + 1);
    }
  }

  void restart_if_decided(const RoundResult& result, Controller& controller) {
    if (result.report.entropy >= system_.rounds.restart_entropy) return;
    Rng rng(controller.rng);
    if (!policy_.restart(rng)) return;
    controller.rng = rng.state();
    ++progress_.epoch.number;
    progress_.epoch.began = progress_.applied + 1;
    optimizer_.restart();
    if (shards_ != nullptr)
      shards_->begin(policy_.parameters(), progress_.epoch.number, optimizer_);
  }

  void report(const RoundResult& result, bool learned) {
    if (!learning_.on_round) return;
    TrainingPoint point;
    point.learned = learned;
    point.round = learned ? progress_.rounds : progress_.rounds + 1;
    point.evaluations = environment_.context().evaluations();
    point.seconds = state_.seconds();
    point.simulated_seconds = static_cast<double>(state_.reached().simulated) * 1e-9;
    const auto best = environment_.context().incumbent().value();
    if (best && best->fits()) point.best = best->step;
    point.mean_cost = result.report.mean_cost;
    point.baseline = result.report.baseline;
    point.entropy = result.report.entropy;
    point.gradient_norm = result.report.gradient_norm;
    point.policy_seconds = result.policy_seconds;
    point.learner_seconds = result.learner_seconds;
    point.waiting_seconds = result.waiting_seconds;
    point.evaluation_seconds = result.evaluation_seconds;
    describe(result.outcomes, point);
    learning_.on_round(point);
  }

  const SamplingSystem& system_;
  Policy& policy_;
  std::int64_t batch_;
  Environment& environment_;
  const Learning& learning_;
  Optimizer optimizer_;
  SamplingParts parts_;
  bool in_order_;
  dist::Crew* crew_ = nullptr;
  Teams teams_{1, 1, 0};
  const Teams::Present present_ = [this](int rank) { return crew_->present(rank); };
  ParameterShards* shards_ = nullptr;  // where parameters are divided; else they are the policy's

  std::mutex mutex_;
  RunState state_;
  Progress progress_;
  std::uint64_t run_number_;
  std::int64_t allowance_ = 0;  // evaluations that may still begin
  std::size_t first_ = 0;       // round of this run
  std::size_t next_ = 0;        // round to begin
  // Where the first round was applied in which nothing was learned: what a checkpoint has then.
  struct Before {
    StateWriter state;
    RunState::Reached reached;
  };
  std::optional<Before> before_unlearned_;
  std::map<std::size_t, std::size_t> controller_by_round_;
  std::set<std::size_t> own_rounds_;            // that this rank is at
  std::map<std::size_t, RoundTask> tasks_;      // that are not over
  std::map<std::size_t, RoundResult> results_;  // whose turn has not come
  std::optional<Error> failure_;
};

// What the first round begins with, which is the same with any number of controllers; nothing where
// that took all the time. What a checkpoint goes on with is made however long it takes.
std::optional<SamplingParts> begin(const SamplingSystem& system, Environment& environment,
                                   const Rng& weights, Rng& rng, const LearningRun& run) {
  PlaceContext& context = environment.context();
  const auto make = [&] {
    Rng own = weights;
    SamplingParts parts = make_parts(system, context.problem(), context.learning().device, own);
    gradient_learner(parts);
    return parts;
  };
  if (!context.learning().resume.empty()) return make();
  Deadline deadline(environment.budget());
  try {
    SamplingParts parts = make();
    const MethodPtr method = sample_and_learn(parts.policy, parts.learner, system.rounds);
    method->prepare(environment, rng);
    if (run.begin_from) method->imitate(*run.begin_from, environment, rng);
    if (environment.spent()) return std::nullopt;
    return parts;
  } catch (const std::exception&) {
    if (!deadline.passed()) throw;
    return std::nullopt;
  }
}

}  // namespace

void train_with_controllers(const SamplingSystem& system, Environment& environment,
                            const Rng& weights, Rng rng, const LearningRun& run) {
  PlaceContext& context = environment.context();
  const Budget& budget = environment.budget();
  const Learning& learning = context.learning();
  const Rng began_with = rng;
  std::optional<SamplingParts> parts = begin(system, environment, weights, rng, run);
  if (!parts) return;
  const auto make_desk = [&] { return std::make_unique<Desk>(system, context, run.key, weights); };
  Training training(system, std::move(*parts), environment, began_with, rng, run);
  if (!learning.resume.empty()) {
    training.load(StateReader(learning.resume, learning.resume_name));
    if (environment.spent()) return;  // the checkpoint is as it should be
  }
  const std::unique_ptr<Desk> desk = make_desk();
  if (const LearningCrew* others = learning.crew) {
    desk->work_with(others->workers);
    const Teams teams(others->crew->size(), system.controllers, system.workers);
    return training.run(*others->crew, teams, others->address, *desk, budget);
  }
  const int size = static_cast<int>(
      std::clamp<std::int64_t>(system.controllers, 1, std::max(1, budget.threads)));
  Budget share = budget;
  share.threads = std::max(1, budget.threads / size);
  LocalCrew local(size, make_desk, share);
  training.run(local.crew(), Teams(size, system.controllers, 0), "", *desk, share);
}

void help_controllers(const SamplingSystem& system, PlaceContext& context, const Budget& budget,
                      const LearningRun& run, const Rng& weights, LearningTask& task) {
  if (*task.kept == nullptr) {
    *task.kept = std::make_shared<Desk>(system, context, run.key, weights);
  }
  Desk& desk = *std::static_pointer_cast<Desk>(*task.kept);
  desk.work_with(task.workers);
  task.result = desk.run(*task.description, *task.line, *task.notes, budget);
}

}  // namespace emplace::learn
