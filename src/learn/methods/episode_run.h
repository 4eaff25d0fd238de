// Plays one episode of several workers in lock-step (Placeto).
#pragma once

#include <cstdint>
#include <future>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.h"

#include "learn/methods/episode_rewards.h"
#include "learn/methods/move_policy.h"
#include "learn/train/environment.h"

namespace emplace::learn {

// What one worker does in an episode.
struct Trajectory {
  std::vector<DeviceId> devices;    // by unit, at first
  std::vector<UnitId> turns;        // whose turn it is at each step
  bool greedy = false;              // takes the likeliest device instead of drawing one
  std::vector<float> leaning = {};  // of all its states
  // Filled in: one decision for every step, and one runtime more.
  std::vector<Decision> decisions = {};
  std::vector<double> runtimes = {};
};

struct EpisodeReport {
  double best_runtime = std::numeric_limits<double>::infinity();
  std::vector<DeviceId> best;  // by unit
  Nanoseconds best_step = 0;   // of those that fit; 0: none does
  double mean_seconds = 0;     // over all states, as the next
  double fitting_share = 0;
  double last_seconds = 0;  // over the workers, at the end
  double policy_seconds = 0;
  double waiting_seconds = 0;  // for evaluations
  bool complete = false;
};

// One half of the workers is evaluated while the policy decides for the other: always the same
// halves, so the number of threads changes nothing. A step that leaves a unit where it was needs no
// evaluation, and is none unless `count_stays`. Stops before the end, and is not complete, when the
// budget is spent. All trajectories are of one length.
EpisodeReport play_episode(const MovePolicy& policy, const Runtimes& runtimes,
                           Environment& environment, Rng& rng,
                           std::vector<Trajectory>& trajectories, bool count_stays = false);

// Of whole trajectories: each decision, and how much more came after it than the baseline expects.
// The baseline hears of them first. They point to the trajectories' states.
std::vector<WeightedDecision> weighted_decisions(std::span<const Trajectory> trajectories,
                                                 EpisodeReward reward, StepBaseline& baseline);

}  // namespace emplace::learn
