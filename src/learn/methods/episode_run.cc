#include "learn/methods/episode_run.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace emplace::learn {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class EpisodeRun {
 public:
  EpisodeRun(const MovePolicy& policy, const Runtimes& runtimes, Environment& environment, Rng& rng,
             std::vector<Trajectory>& trajectories, bool count_stays)
      : policy_(policy),
        runtimes_(runtimes),
        environment_(environment),
        rng_(rng),
        count_stays_(count_stays) {
    const std::size_t units = policy.units().size();
    for (Trajectory& trajectory : trajectories) {
      Worker worker{.trajectory = &trajectory};
      worker.state.devices = trajectory.devices;
      worker.state.visits.assign(units, 0);
      worker.state.leaning = trajectory.leaning;
      trajectory.decisions.clear();
      trajectory.runtimes.clear();
      halves_[workers_.size() < trajectories.size() / 2 ? 0 : 1].workers.push_back(workers_.size());
      workers_.push_back(std::move(worker));
    }
    const std::size_t steps = trajectories.empty() ? 0 : trajectories.front().turns.size();
    allowance_ = environment.affordable(static_cast<std::int64_t>(workers_.size() * (steps + 1)));
  }

  EpisodeReport play() {
    const std::size_t steps = workers_.front().trajectory->turns.size();
    bool going = true;
    for (std::size_t step = 0; going && step <= steps; ++step) {
      for (Half& half : halves_) {
        if (step > 0) {
          collect(half);
          decide(half, step - 1);
        }
        going = going && begin_evaluation(half);
      }
    }
    for (Half& half : halves_) collect(half);
    report_.complete = going;
    report_.mean_seconds /= std::max(1.0, states_);
    report_.fitting_share /= std::max(1.0, states_);
    for (const Worker& worker : workers_) {
      report_.last_seconds +=
          static_cast<double>(worker.outcome.step) * 1e-9 / static_cast<double>(workers_.size());
    }
    return std::move(report_);
  }

 private:
  struct Worker {
    Trajectory* trajectory;
    PlacementState state = {};
    SampleOutcome outcome = {};
    bool pending = true;  // its placement is to be evaluated
  };
  struct Half {
    std::vector<std::size_t> workers = {};
    std::vector<std::size_t> evaluated = {};  // those whose placements are being evaluated
    std::future<std::vector<OutcomeWithStarts>> outcomes = {};
    bool pending = false;
  };

  // False when the budget does not allow it all: then what it does allow is evaluated.
  bool begin_evaluation(Half& half) {
    half.evaluated.clear();
    std::vector<Placement> placements;
    bool all = !environment_.budget().spent(0);  // time and interruptions; the rest is counted here
    for (const std::size_t i : half.workers) {
      if (!workers_[i].pending) continue;
      if (all && allowance_ == 0) all = false;
      if (!all) break;
      --allowance_;
      half.evaluated.push_back(i);
      placements.push_back(policy_.units().expand(workers_[i].state.devices));
    }
    half.outcomes = environment_.evaluate_with_starts(std::move(placements));
    half.pending = true;
    return all;
  }

  void collect(Half& half) {
    if (!half.pending) return;
    half.pending = false;
    const Clock::time_point start = Clock::now();
    std::vector<OutcomeWithStarts> outcomes = half.outcomes.get();
    report_.waiting_seconds += seconds_since(start);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      Worker& worker = workers_[half.evaluated[i]];
      worker.pending = false;
      worker.outcome = outcomes[i].outcome;
      worker.state.starts = policy_.features().starts(outcomes[i].starts);
    }
    for (const std::size_t i : half.workers) {
      if (!workers_[i].pending) note(workers_[i]);
    }
  }

  void note(Worker& worker) {
    const SampleOutcome& outcome = worker.outcome;
    const double runtime = runtimes_(outcome);
    worker.trajectory->runtimes.push_back(runtime);
    states_ += 1;
    report_.mean_seconds += static_cast<double>(outcome.step) * 1e-9;
    if (outcome.fits()) {
      report_.fitting_share += 1;
      if (report_.best_step == 0 || outcome.step < report_.best_step) {
        report_.best_step = outcome.step;
      }
    }
    if (runtime < report_.best_runtime) {
      report_.best_runtime = runtime;
      report_.best = worker.state.devices;
    }
  }

  void decide(Half& half, std::size_t step) {
    if (half.workers.empty()) return;
    const Clock::time_point start = Clock::now();
    const torch::NoGradGuard no_gradients;
    std::vector<const PlacementState*> states;
    for (const std::size_t i : half.workers) {
      workers_[i].state.current = workers_[i].trajectory->turns[step];
      states.push_back(&workers_[i].state);
    }
    const torch::Tensor log_probs = policy_.log_probs(states).to(torch::kCPU);
    const torch::Tensor drawn =
        draw(log_probs, uniforms({static_cast<std::int64_t>(states.size())}, rng_));
    const torch::Tensor likeliest = log_probs.argmax(1);
    for (std::size_t w = 0; w < half.workers.size(); ++w) {
      const auto row = static_cast<std::int64_t>(w);
      Worker& worker = workers_[half.workers[w]];
      const torch::Tensor& actions = worker.trajectory->greedy ? likeliest : drawn;
      const std::int64_t device = actions[row].item<std::int64_t>();
      take(worker, static_cast<DeviceId>(device), log_probs[row][device].item<float>());
    }
    report_.policy_seconds += seconds_since(start);
  }

  void take(Worker& worker, DeviceId device, float log_prob) const {
    PlacementState& state = worker.state;
    worker.trajectory->decisions.push_back({state, device, log_prob});
    worker.pending = count_stays_ || state.devices[state.current] != device;
    state.devices[state.current] = device;
    std::uint8_t& visits = state.visits[state.current];
    if (visits < std::numeric_limits<std::uint8_t>::max()) ++visits;
  }

  const MovePolicy& policy_;
  const Runtimes& runtimes_;
  Environment& environment_;
  Rng& rng_;
  bool count_stays_;
  std::vector<Worker> workers_;
  std::array<Half, 2> halves_;
  std::int64_t allowance_ = 0;  // evaluations that may still begin
  double states_ = 0;
  EpisodeReport report_;
};

}  // namespace

EpisodeReport play_episode(const MovePolicy& policy, const Runtimes& runtimes,
                           Environment& environment, Rng& rng,
                           std::vector<Trajectory>& trajectories, bool count_stays) {
  return EpisodeRun(policy, runtimes, environment, rng, trajectories, count_stays).play();
}

std::vector<WeightedDecision> weighted_decisions(std::span<const Trajectory> trajectories,
                                                 EpisodeReward reward, StepBaseline& baseline) {
  const auto workers = static_cast<double>(trajectories.size());
  std::vector<std::vector<double>> returns;
  std::vector<double> mean(trajectories.front().decisions.size(), 0);
  for (const Trajectory& trajectory : trajectories) {
    returns.push_back(returns_of(reward, trajectory.runtimes));
    for (std::size_t t = 0; t < mean.size(); ++t) mean[t] += returns.back()[t] / workers;
  }
  baseline.add(std::move(mean));
  const std::vector<double> expected = baseline.values();
  std::vector<WeightedDecision> decisions;
  for (std::size_t w = 0; w < trajectories.size(); ++w) {
    for (std::size_t t = 0; t < expected.size(); ++t) {
      const Decision& decision = trajectories[w].decisions[t];
      decisions.push_back({&decision.state, decision.device, returns[w][t] - expected[t]});
    }
  }
  return decisions;
}

}  // namespace emplace::learn
