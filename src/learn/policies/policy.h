// A policy: a distribution over placements. It samples with log-probabilities and scores given
// samples again; who teaches it (learn/learners/learner.h) never looks inside.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <emplace/search.h>

#include "base/rng.h"

#include "sim/placement.h"

#include "learn/nn/module.h"
#include "learn/nn/torch.h"
#include "learn/train/state.h"

namespace emplace::learn {

// Each sample is a row of decisions; a policy may decide about more than devices (HDP: groups).
struct Samples {
  torch::Tensor actions;    // int64 [samples, decisions]
  torch::Tensor log_probs;  // [samples, decisions], at sampling
  // What else scoring needs, such as exploration noise; each [samples, ...] or [1, ...].
  std::vector<torch::Tensor> context = {};

  std::int64_t size() const { return actions.size(0); }
  // Rows first .. first + count.
  Samples slice(std::int64_t first, std::int64_t count) const;
};

struct Scores {
  torch::Tensor log_probs;  // [samples, decisions]
  torch::Tensor entropy;    // scalar: the mean over samples and decisions, in nats
  // The whole distributions, for KL: each [samples or 1, decisions, classes], the decisions of all
  // of them together in the order of `log_probs`.
  std::vector<torch::Tensor> distributions;
};

class Policy {
 public:
  virtual ~Policy() = default;

  // Before the first round, and not after a checkpoint: what needs no placements, such as
  // contrastive pre-training. Stops early when the budget is spent.
  virtual void prepare(const Budget& /*budget*/, Rng& /*rng*/) {}
  // `count` placements, without gradients.
  virtual Samples sample(std::int64_t count, Rng& rng) = 0;
  // With gradients. From the same parameters, the log-probabilities are those of sampling. Called
  // from several threads at once, on different samples.
  virtual Scores score(const Samples& samples) = 0;
  // Valid but for missing links.
  virtual Placement placement(const Samples& samples, std::int64_t index) const = 0;
  // Decisions that come as near to the placement as the policy can: one sample.
  virtual Samples actions_for(const Placement& placement) = 0;

  // Sets the policy to the frequencies of the decisions in `elite`, mixed with `uniform_share` of
  // the uniform distribution, where that has a closed form; false where it has none.
  virtual bool fit(const Samples& /*elite*/, double /*uniform_share*/) { return false; }

  // Forgets what it has learned, where beginning anew is cheap; false where it is not.
  virtual bool restart(Rng& /*rng*/) { return false; }

  // How many parts a batch is scored in, side by side: a constant of the policy, so that threads
  // change nothing. 1 where most of the work is the same for all samples.
  virtual std::int64_t shards() const { return 1; }
  // Told before each round how many there were, for what changes over time (exploration noise).
  virtual void begin_round(std::int64_t) {}
  // Told after an update which samples it was about, for what only this policy knows of the round.
  virtual void describe(const Samples& /*samples*/, TrainingPoint& /*point*/) {}

  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }

 protected:
  explicit Policy(torch::Device device) : parameters_(device) {}

  Parameters parameters_;
};

}  // namespace emplace::learn
