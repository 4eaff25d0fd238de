// Teaches a policy from the costs of its samples, without looking inside it.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <vector>

#include "learn/nn/optimizer_settings.h"
#include "learn/policies/policy.h"
#include "learn/train/costs.h"
#include "learn/train/environment.h"
#include "learn/train/state.h"

namespace emplace::learn {

// What an update tells of itself, for the curves.
struct UpdateReport {
  double mean_cost = 0;
  double baseline = 0;
  double entropy = 0;
  double kl = 0;
  double gradient_norm = 0;
};

// Outcomes that may not be there yet.
class PendingOutcomes {
 public:
  explicit PendingOutcomes(std::future<std::vector<SampleOutcome>> outcomes)
      : outcomes_(std::move(outcomes)) {}

  // Waits where it must.
  const std::vector<SampleOutcome>& get();
  double waited_seconds() const { return waited_seconds_; }

 private:
  std::future<std::vector<SampleOutcome>> outcomes_;
  std::vector<SampleOutcome> values_;
  double waited_seconds_ = 0;
};

class Learner {
 public:
  virtual ~Learner() = default;

  // Samples of one update.
  virtual std::int64_t batch() const = 0;
  // `outcomes` are of the samples; it asks for them as late as possible.
  virtual UpdateReport update(Policy& policy, const Samples& samples, PendingOutcomes& outcomes,
                              int threads) = 0;
  // Costs of samples that another learner used in its place.
  virtual void hear(const std::vector<SampleOutcome>&) {}
  // As it was before the first update.
  virtual void restart() = 0;
  virtual void save(StateWriter& state) const = 0;
  // To go on with a policy whose parameters were loaded.
  virtual void load(const StateReader& state, Policy& policy) = 0;
};

// One whose gradients and steps can be apart: controllers find gradients, a parameter server takes
// the steps (learn/controllers/controllers.h).
class GradientLearner : public Learner {
 public:
  struct Found {
    std::vector<torch::Tensor> gradient = {};  // by parameter; none: nothing to learn from
    UpdateReport report = {};
  };
  // What an update would step along. The baseline hears of the outcomes.
  virtual Found find_gradient(Policy& policy, const Samples& samples, PendingOutcomes& outcomes,
                              int threads) = 0;
  // What the next gradient depends on beside the policy: what the baseline knows, and how many
  // updates there were.
  virtual std::vector<double> memory() const = 0;
  virtual void recall(const std::vector<double>& memory, std::int64_t updates) = 0;
  virtual const OptimizerSettings& steps() const = 0;
};

// Part of a batch.
struct Shard {
  std::int64_t index = 0;
  std::int64_t first = 0;  // row
  std::int64_t count = 0;
};

// The gradient of the sum of `loss` over the policy's shards of the samples, by parameter, and the
// mean entropy. `loss` is called after a shard was scored, from several threads at once.
// Independent of the number of threads.
struct Gradient {
  std::vector<torch::Tensor> by_parameter;
  double entropy = 0;
};
using ShardLoss = std::function<torch::Tensor(const Scores& scores, const Shard& shard)>;
Gradient gradient_of(Policy& policy, const Samples& samples, int threads, const ShardLoss& loss);

}  // namespace emplace::learn
