// A way to learn a placement: a policy with its learner, or episodes of single moves (Placeto).
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"

#include "sim/placement.h"

#include "learn/parts.h"
#include "learn/train/environment.h"
#include "search/learning.h"

namespace emplace::learn {

class StateWriter;
class StateReader;

class Method {
 public:
  virtual ~Method() = default;

  // Before the first round, and not after a checkpoint: contrastive pre-training, a trained
  // policy's proposals. Stops early when the environment's budget is spent.
  virtual void prepare(Environment&, Rng&) {}
  // Before the first round: makes the placement likely.
  virtual void imitate(const Placement& placement, Environment& environment, Rng& rng) = 0;
  // Placements that a whole round evaluates.
  virtual std::int64_t round_size() const = 0;
  // Samples, evaluates and learns once. Fills in what the method knows of the point. Where the
  // budget allows less than a whole round, it evaluates what it may, does not learn, and returns
  // false: its state is then that before the round, and does not count.
  virtual bool round(Environment& environment, Rng& rng, TrainingPoint& point) = 0;

  // Whether it wants no more rounds.
  virtual bool done() const { return false; }

  virtual void save(StateWriter& state) const = 0;
  virtual void load(const StateReader& state) = 0;
};

// Fills in what the outcomes of a round say.
void describe(const std::vector<SampleOutcome>& outcomes, TrainingPoint& point);

struct ImitationSettings {
  std::int64_t steps = 200;  // at most
  double learning_rate = 0.01;
  double likelihood = 0.9;  // of a decision, in the geometric mean: enough
};

struct SampleAndLearnSettings {
  ImitationSettings imitation = {};
  // Below this entropy (nats per decision) a policy that can begins anew: it would only repeat
  // itself. 0: never.
  double restart_entropy = 0;
};
// Rounds of sampling a batch, evaluating it and an update of the learner.
MethodPtr sample_and_learn(PolicyPtr policy, LearnerPtr learner,
                           const SampleAndLearnSettings& settings = {});

}  // namespace emplace::learn
