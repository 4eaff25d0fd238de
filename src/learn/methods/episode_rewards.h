// What the steps of an episode are worth (Placeto): runtimes with a penalty for memory, returns,
// and what returns are compared with.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/problem.h"

#include "learn/train/environment.h"

namespace emplace::learn {

class StateReader;
class StateWriter;

struct RuntimeSettings {
  double penalty = 10;     // for an overflow of one
  double cap = 10;         // no placement is worse
  bool logarithm = false;  // of the penalised runtime
  // As published: seconds and gigabytes of 1e9 bytes.
  bool in_seconds = false;
};

// Penalised runtimes, min(time + penalty * overflow, cap). Unless in seconds, times are in
// multiples of all ops' time one after the other where each is fastest, overflows in multiples of
// the smallest capacity, so that the settings mean the same for every graph and cluster.
class Runtimes {
 public:
  Runtimes(const Problem& problem, const RuntimeSettings& settings);

  // What is not valid counts as the cap.
  double operator()(const SampleOutcome& outcome) const;

 private:
  RuntimeSettings settings_;
  double time_unit_;    // nanoseconds
  double memory_unit_;  // bytes
};

enum class EpisodeReward {
  kImprovement,  // of step t: runtime before less runtime after
  kTerminal,     // nothing, then less the last runtime
  kMinimum,      // the improvement up to the best state still to come
};

// The undiscounted return of every step, from the runtimes of all states, the first included.
std::vector<double> returns_of(EpisodeReward reward, std::span<const double> runtimes);

// For every step, the mean of the latest episodes' returns at that step.
class StepBaseline {
 public:
  explicit StepBaseline(std::int64_t episodes) : episodes_(static_cast<std::size_t>(episodes)) {}

  // The mean over the workers of one episode, by step.
  void add(std::vector<double> returns);
  // By step; needs an episode.
  std::vector<double> values() const;

  void save(StateWriter& state, const std::string& prefix) const;
  // Of episodes of `steps` each; of any number where it is not known.
  void load(const StateReader& state, const std::string& prefix, std::optional<std::size_t> steps);

 private:
  std::size_t episodes_;
  std::deque<std::vector<double>> latest_;
};

}  // namespace emplace::learn
