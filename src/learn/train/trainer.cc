#include "learn/train/trainer.h"

#include <chrono>

#include "learn/nn/deadline.h"
#include "learn/train/run_state.h"

namespace emplace::learn {
namespace {

class Trainer {
 public:
  Trainer(Method& method, Environment& environment, Rng rng, const LearningRun& asked)
      : method_(method),
        environment_(environment),
        rng_(rng),
        asked_(asked),
        learning_(environment.context().learning()),
        state_(environment, asked.key, rng) {}

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
      const RunState::Reached reached = state_.reached();
      const double begin = state_.seconds();
      // A round that is long enough to matter is given up when time is; what was saved is then the
      // state before it.
      const bool in_pieces = last_round_seconds_ > kShortRound;
      const std::string before_round =
          in_pieces && learning_.save ? state_bytes(reached) : std::string();
      bool whole = false;
      if (!in_pieces) {
        whole = round();
      } else if (!within_time([&] { whole = round(); })) {
        if (learning_.save) learning_.save(before_round);
        return;
      }
      last_round_seconds_ = state_.seconds() - begin;
      if (!whole) {
        // What a shorter last round did is not what a longer run would do: it does not count.
        rng_ = before;
        save(reached);
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
    point.seconds = state_.seconds();
    point.simulated_seconds = static_cast<double>(state_.reached().simulated) * 1e-9;
    point.evaluation_seconds = environment_.take_evaluation_seconds();
    const auto best = environment_.context().incumbent().value();
    if (best && best->fits()) point.best = best->step;
    if (learning_.on_round) learning_.on_round(point);
    return point.learned;
  }

  double seconds_since_save() const {
    return std::chrono::duration<double>(Clock::now() - saved_at_).count();
  }

  void save() { save(state_.reached()); }

  void save(const RunState::Reached& reached) {
    if (!learning_.save) return;
    learning_.save(state_bytes(reached));
    saved_at_ = Clock::now();
  }

  std::string state_bytes(const RunState::Reached& reached) const {
    StateWriter state;
    state_.save(state, reached);
    put_rng(state, "rng", rng_.state());
    state.put("round", rounds_);
    method_.save(state);
    return state.bytes();
  }

  void load() {
    const StateReader state(learning_.resume, learning_.resume_name);
    state_.load(state);
    rng_ = Rng(rng_of(state, "rng"));
    rounds_ = state.count("round");
    method_.load(state);
  }

  Method& method_;
  Environment& environment_;
  Rng rng_;
  const LearningRun& asked_;
  const Learning& learning_;
  RunState state_;
  std::int64_t rounds_ = 0;
  double last_round_seconds_ = 1;  // the first may be long
  Clock::time_point saved_at_ = Clock::now();
};

}  // namespace

void train(Method& method, Environment& environment, Rng rng, const LearningRun& run) {
  Trainer(method, environment, rng, run).run();
}

}  // namespace emplace::learn
