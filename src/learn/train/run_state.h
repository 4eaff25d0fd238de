// What the checkpoint of a learning run has whatever learns: what it is about, how far it has come,
// and the best so far.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"

#include "learn/train/environment.h"
#include "learn/train/state.h"

namespace emplace::learn {

class RunState {
 public:
  struct Reached {
    std::int64_t evaluations = 0;
    Nanoseconds simulated = 0;  // what it would have taken to measure them
  };

  // `key` is the placer's; `rng` is what the run begins with and stands for the seed.
  RunState(Environment& environment, std::string key, const Rng& rng);

  // With what came before the checkpoint that the run goes on from.
  Reached reached() const;
  double seconds() const;

  void save(StateWriter& state, const Reached& reached) const;
  // Offers the best to the incumbent and counts what was evaluated. Throws an Error when the
  // checkpoint is of another problem, placer or seed.
  void load(const StateReader& state);

 private:
  std::string subject() const;

  Environment& environment_;
  std::string key_;
  std::vector<std::int64_t> began_with_;
  double seconds_before_ = 0;
  Nanoseconds simulated_before_ = 0;
};

// Random numbers in a checkpoint.
void put_rng(StateWriter& state, const std::string& name, const Rng::State& rng);
Rng::State rng_of(const StateReader& state, const std::string& name);
// How long the run took before.
double seconds_of(const StateReader& state);

}  // namespace emplace::learn
