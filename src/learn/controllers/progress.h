// How far a training with controllers has come: what its checkpoint has beside the policy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"

#include "learn/nn/torch.h"
#include "learn/train/state.h"

namespace emplace::learn {

struct Controller {
  Rng::State rng = {};
  std::vector<double> memory = {};  // what its baseline knows
  std::uint64_t memory_of = 0;      // the epoch
  bool busy = false;
};

struct Epoch {
  std::uint64_t number = 0;  // how often the policy has begun anew
  std::size_t began = 0;     // the first round of it
};

// Rounds are numbered through; those that have begun and are not over are begun again by whoever
// goes on, so nothing of them is here.
struct Progress {
  std::vector<Controller> controllers = {};
  std::size_t applied = 0;  // rounds that are over
  std::int64_t rounds = 0;  // in which something was learned
  Epoch epoch = {};
  std::optional<std::size_t> optimal_after = {};  // so many rounds the answer was proven
  // Where rounds have an order: the parameters after so many of them, and their epochs; those that
  // rounds may still begin from.
  std::map<std::size_t, std::shared_ptr<const std::string>> published = {};
  std::map<std::size_t, Epoch> epochs = {{0, {}}};

  void forget_before(std::size_t version);
  void save(StateWriter& state) const;
  // Of as many controllers. `like`: the parameters. Throws an Error when it makes no sense.
  void load(const StateReader& state, const std::vector<torch::Tensor>& like);
};

}  // namespace emplace::learn
