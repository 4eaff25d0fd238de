#include "learn/train/trainer.h"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "base/error.h"

#include "learn/nn/deadline.h"
#include "learn/nn/torch.h"
#include "learn/train/state.h"

namespace emplace::learn {
namespace {

// Of all that placements are valued by: durations, transfers, capacities, what may run where.
std::uint64_t fingerprint(const Problem& problem) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto mix = [&](std::int64_t value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3ULL;
    hash ^= hash >> 31;
  };
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    mix(problem.cluster().device(device).memory);
    for (OpId op = 0; op < problem.num_ops(); ++op) mix(problem.duration(op, device));
    for (DeviceId to = 0; to < problem.num_devices(); ++to) {
      // A few sizes tell latency and bandwidth.
      const TensorId tensors = problem.graph().num_tensors();
      for (TensorId i = 0; i < std::min<TensorId>(tensors, 16); ++i) {
        mix(problem.transfer_time(i * (tensors / std::min<TensorId>(tensors, 16)), device, to));
      }
    }
  }
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    mix(problem.group_resident_bytes(group));
    for (const DeviceId device : problem.allowed_devices(group)) mix(device);
  }
  return hash;
}

class Trainer {
 public:
  Trainer(Method& method, Environment& environment, Rng rng, const LearningRun& asked)
      : method_(method),
        environment_(environment),
        began_with_(numbers(rng)),
        rng_(rng),
        asked_(asked),
        learning_(environment.context().learning()) {}

  void run() {
    if (learning_.resume.empty()) {
      const bool in_time = within_time([&] {
        method_.prepare(environment_, rng_);
        if (asked_.begin_from) method_.imitate(*asked_.begin_from, environment_, rng_);
      });
      // Cut short, it is not what a run that goes on begins with: there is nothing to save.
      if (!in_time || environment_.spent()) return;
    } else {
      load();
    }
    while (!environment_.spent() && !method_.done() &&
           !environment_.context().incumbent().optimal()) {
      const Rng before = rng_;
      const std::int64_t evaluations = environment_.context().evaluations();
      const Nanoseconds simulated = simulated_time();
      const double begin = seconds();
      // A round that is long enough to matter is given up when time is; what was saved is then the
      // state before it.
      const bool in_pieces = last_round_seconds_ > kShortRound;
      const std::string before_round =
          in_pieces && learning_.save ? state_bytes(evaluations, simulated) : std::string();
      bool whole = false;
      if (!in_pieces) {
        whole = round();
      } else if (!within_time([&] { whole = round(); })) {
        if (learning_.save) learning_.save(before_round);
        return;
      }
      last_round_seconds_ = seconds() - begin;
      if (!whole) {
        // What a shorter last round did is not what a longer run would do: it does not count.
        rng_ = before;
        save(evaluations, simulated);
        return;
      }
      if (seconds_since_save() >= learning_.save_seconds) save();
    }
    save();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kShortRound = 0.1;  // seconds

  // False when `body` was given up because time was.
  template <class Body>
  bool within_time(Body body) {
    Deadline deadline(environment_.budget());
    try {
      body();
    } catch (const std::exception&) {
      if (!deadline.passed()) throw;
      return false;
    }
    return true;
  }

  // Whether it was a whole one.
  bool round() {
    TrainingPoint point;
    point.learned = method_.round(environment_, rng_, point);
    point.round = rounds_ + 1;
    if (point.learned) ++rounds_;
    point.evaluations = environment_.context().evaluations();
    point.seconds = seconds();
    point.simulated_seconds = static_cast<double>(simulated_time()) * 1e-9;
    point.evaluation_seconds = environment_.take_evaluation_seconds();
    const auto best = environment_.context().incumbent().value();
    if (best && best->fits()) point.best = best->step;
    if (learning_.on_round) learning_.on_round(point);
    return point.learned;
  }

  double seconds() const { return seconds_before_ + environment_.budget().elapsed_seconds(); }
  Nanoseconds simulated_time() const { return simulated_before_ + environment_.simulated_time(); }
  double seconds_since_save() const {
    return std::chrono::duration<double>(Clock::now() - saved_at_).count();
  }

  static std::vector<std::int64_t> numbers(const Rng& rng) {
    return {rng.state().begin(), rng.state().end()};
  }

  // What must be the same for a checkpoint to make sense.
  std::string subject() const {
    const Problem& problem = environment_.problem();
    const char* goal = environment_.context().objective().match(
        [](const StepTime&) { return "the step"; },
        [](const StreamPeriod& stream) {
          return stream.overlap == Overlap::kFull ? "the period" : "the period without overlap";
        });
    const std::string& scheduler = environment_.context().evaluator().scheduler();
    const std::string order = scheduler == kOwnSchedule ? "" : " under " + scheduler;
    return fmt::format("{} for {} of {}{}: {} ops in {} groups on {} devices, costs {:016x}",
                       asked_.key, goal, problem.graph().name(), order, problem.num_ops(),
                       problem.num_groups(), problem.num_devices(), fingerprint(problem));
  }

  void save() { save(environment_.context().evaluations(), simulated_time()); }

  // After so many evaluations, which would have taken so long to measure.
  void save(std::int64_t evaluations, Nanoseconds simulated) {
    if (!learning_.save) return;
    learning_.save(state_bytes(evaluations, simulated));
    saved_at_ = Clock::now();
  }

  std::string state_bytes(std::int64_t evaluations, Nanoseconds simulated) const {
    StateWriter state;
    state.put("subject", subject());
    state.put("began_with", began_with_);
    state.put("rng", numbers(rng_));
    state.put("round", rounds_);
    state.put("evaluations", evaluations);
    state.put("seconds", seconds());
    state.put("simulated_time", simulated);
    const std::optional<Solution> best = environment_.context().incumbent().best();
    std::vector<std::int64_t> devices;
    if (best) devices.assign(best->placement.begin(), best->placement.end());
    state.put("best", devices);
    state.put("best_priorities", best ? best->schedule.priorities : std::vector<std::int64_t>{});
    method_.save(state);
    return state.bytes();
  }

  void load() {
    const StateReader state(learning_.resume, learning_.resume_name);
    const std::string saved = state.text("subject");
    if (saved != subject()) {
      fail_input("{}: a checkpoint of {}; expected one of {}", learning_.resume_name, saved,
                 subject());
    }
    if (state.integers("began_with") != began_with_) {
      fail_input("{}: a checkpoint of a run with another seed", learning_.resume_name);
    }
    const std::vector<std::int64_t> words = state.integers("rng");
    Rng::State rng_state{};
    if (words.size() != rng_state.size()) fail_input("{}: 'rng' is wrong", learning_.resume_name);
    std::copy(words.begin(), words.end(), rng_state.begin());
    rng_ = Rng(rng_state);
    rounds_ = state.integer("round");
    seconds_before_ = state.real("seconds");
    simulated_before_ = state.integer("simulated_time");
    PlaceContext& context = environment_.context();
    const std::vector<std::int64_t> devices = state.integers("best");
    if (!devices.empty()) {
      Solution best{Placement(devices.begin(), devices.end()),
                    Schedule{state.integers("best_priorities")},
                    {},
                    asked_.key};
      with_context(learning_.resume_name,
                   [&] { check_placement(environment_.problem(), best.placement); });
      best.value = context.evaluator().evaluate(best.placement, best.schedule);
      context.incumbent().offer(std::move(best));
    }
    context.evaluator().count(state.integer("evaluations") - context.evaluations());
    method_.load(state);
  }

  Method& method_;
  Environment& environment_;
  std::vector<std::int64_t> began_with_;  // stands for the seed
  Rng rng_;
  const LearningRun& asked_;
  const Learning& learning_;
  std::int64_t rounds_ = 0;
  double seconds_before_ = 0;
  Nanoseconds simulated_before_ = 0;
  double last_round_seconds_ = 1;  // the first may be long
  Clock::time_point saved_at_ = Clock::now();
};

}  // namespace

void train(Method& method, Environment& environment, Rng rng, const LearningRun& run) {
  Trainer(method, environment, rng, run).run();
}

}  // namespace emplace::learn
