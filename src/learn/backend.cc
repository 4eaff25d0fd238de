// The other side of learn/backend.h, in the library that links libtorch.
#include "learn/backend.h"

#include <exception>
#include <utility>
#include <variant>

#include "base/error.h"

#include "learn/controllers/controllers.h"
#include "learn/general/canonical.h"
#include "learn/general/exercise_ranks.h"
#include "learn/general/multi_graph_trainer.h"
#include "learn/general/policy_file.h"
#include "learn/make_method.h"
#include "learn/nn/deadline.h"
#include "learn/nn/device.h"
#include "learn/nn/single_thread.h"
#include "learn/train/trainer.h"

namespace emplace::learn {
namespace {

// What random numbers are for.
constexpr std::uint64_t kWeights = 2;
constexpr std::uint64_t kRounds = 3;

// Nothing where that alone would take longer than the time there is, as it may on very large graphs
// and for very wide networks. What a checkpoint goes on with is made however long it takes.
MethodPtr make_in_time(const System& system, PlaceContext& context, const Budget& budget,
                       Rng& weights) {
  const Learning& learning = context.learning();
  if (!learning.resume.empty()) {
    return make_method(system, context.problem(), learning.device, weights);
  }
  Deadline deadline(budget);
  try {
    return make_method(system, context.problem(), learning.device, weights);
  } catch (const std::exception&) {
    if (!deadline.passed()) throw;
    return nullptr;
  }
}

class TorchBackend final : public Backend {
 public:
  void require_device(const std::string& device) const override {
    const SingleThread single_thread;
    learn::require_device(device);
  }

  void learn(const System& system, PlaceContext& context, const Budget& budget,
             const LearningRun& run, const Rng& rng) const override {
    const SingleThread single_thread;
    Rng weights = rng.split(kWeights);
    const auto* sampling = std::get_if<SamplingSystem>(&system);
    if (sampling != nullptr && sampling->has_parameter_server()) {
      Environment environment(context, budget, run.key);
      return train_with_controllers(*sampling, environment, weights, rng.split(kRounds), run);
    }
    const MethodPtr method = make_in_time(system, context, budget, weights);
    if (method == nullptr) return;
    Environment environment(context, budget, run.key);
    train(*method, environment, rng.split(kRounds), run);
  }

  void help(const System& system, PlaceContext& context, const Budget& budget,
            const LearningRun& run, const Rng& rng) const override {
    const SingleThread single_thread;
    const auto* sampling = std::get_if<SamplingSystem>(&system);
    if (sampling == nullptr) fail_input("{} has no controllers to help", run.key);
    help_controllers(*sampling, context, budget, run, rng.split(kWeights),
                     *context.learning().task);
  }

  TrainedPolicy train_on_graphs(std::vector<TrainingTask> tasks, const MultiGraphSettings& settings,
                                const std::string& begin_from, const std::string& card,
                                const Budget& budget, const Rng& rng,
                                const TrainingHooks& hooks) const override {
    const SingleThread single_thread;
    return learn::train_on_graphs(std::move(tasks), settings, begin_from, card, budget, rng, hooks);
  }

  std::unique_ptr<TrainingHelper> help_to_train(std::vector<TrainingTask> tasks,
                                                const MultiGraphSettings& settings, const Rng& rng,
                                                int threads) const override {
    return help_with_exercises(std::move(tasks), settings, rng, threads);
  }

  Placement in_order(const Problem& problem, const Placement& placement) const override {
    return learn::in_order(problem, placement);
  }

  PolicyDescription describe_policy(std::string_view bytes,
                                    const std::string& file_name) const override {
    const SingleThread single_thread;
    const PolicyFile file(bytes, file_name);
    return {.kind = file.kind(), .network = file.network(), .card = file.card()};
  }
};

}  // namespace
}  // namespace emplace::learn

extern "C" const emplace::learn::Backend* emplace_learn_backend();
extern "C" const emplace::learn::Backend* emplace_learn_backend() {
  static const emplace::learn::TorchBackend backend;
  return &backend;
}
