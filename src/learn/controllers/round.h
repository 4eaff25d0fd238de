// A round of one controller: placements that a copy of the policy samples, their values, and the
// gradient that follows. All that it depends on is in the task, so it does not matter which rank
// does it, or how often.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "base/rng.h"

#include "dist/wire.h"
#include "learn/controllers/shards.h"
#include "learn/learners/learner.h"
#include "learn/make_method.h"

namespace emplace::learn {

struct RoundTask {
  std::uint64_t run = 0;      // which tells this run's ranks from another's
  std::uint64_t number = 0;   // of all controllers' rounds
  std::uint64_t epoch = 0;    // how often the policy has begun anew
  std::uint64_t updates = 0;  // rounds since it has
  std::int64_t samples = 0;
  bool learns = true;               // else the samples are evaluated, and that is all
  double seconds = -1;              // that are left; less than 0: as many as it takes
  Rng::State rng = {};              // the controller's
  std::vector<double> memory = {};  // what its baseline knows
  // The values of the policy's parameters, as `put_tensors` has them; none: they are fetched from
  // their owners, by shard.
  std::shared_ptr<const std::string> parameters = nullptr;
  std::vector<std::int32_t> owners = {};
  std::vector<std::int32_t> workers = {};  // ranks that value samples for whoever does it
};

struct RoundResult {
  int rank = 0;  // that did it
  std::uint64_t epoch = 0;
  bool in_time = true;  // else it was given up, and nothing was learned
  Rng::State rng = {};
  std::vector<double> memory = {};
  std::vector<torch::Tensor> gradient = {};  // none: nothing was learned, or its owners have it
  UpdateReport report = {};
  double policy_seconds = 0;
  double learner_seconds = 0;
  double waiting_seconds = 0;
  double evaluation_seconds = 0;
  std::vector<SampleOutcome> outcomes = {};
  std::size_t best = 0;  // of them, if any is valid; else their number
  Placement placement = {};
};

void put(dist::Writer& writer, const RoundTask& task);
void put(dist::Writer& writer, const RoundResult& result, const Problem& problem);
// Throw an Error when it makes no sense.
RoundTask take_round_task(dist::Reader& reader);
RoundResult take_round_result(dist::Reader& reader, const std::vector<torch::Tensor>& parameters,
                              const Problem& problem);

// A copy of the policy, and what else it takes to do rounds: one for each that works at a time.
class ControllerSeat {
 public:
  // `whole` outlives it; `key` is the placer's, `weights` is what the policy is made from.
  ControllerSeat(const SamplingSystem& system, PlaceContext& whole, std::string key, Rng weights);
  // Whom a task's workers are said to from now on; nullptr: samples are valued here.
  void work_with(WorkerRanks* workers);

  const Parameters& parameters() const { return parts_.policy->parameters(); }
  const OptimizerSettings& steps() const { return learner_->steps(); }
  // The budget's threads, and whether it is cancelled. With `shards`, parameters come from there,
  // and the gradient goes there.
  RoundResult run(const RoundTask& task, const Budget& budget, ParameterShards* shards);

 private:
  void learn(const RoundTask& task, const Budget& budget, ParameterShards* shards,
             RoundResult& result);

  std::string key_;
  PlaceContext context_;
  SamplingParts parts_;
  GradientLearner* learner_;
  WorkerRanks* workers_ = nullptr;
};

// Throws an Error where the system's learner is none whose gradients can be apart from its steps.
GradientLearner& gradient_learner(const SamplingParts& parts);

}  // namespace emplace::learn
