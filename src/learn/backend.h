// All that needs libtorch, behind one interface. The library itself does not link it: what learns
// is in a library of its own, libemplace_torch, which is loaded the first time that it is asked
// for.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/search.h>

#include "base/rng.h"

#include "cost/problem.h"

#include "sim/placement.h"

#include "placer/context.h"

#include "learn/general/network.h"
#include "learn/general/training.h"
#include "learn/system.h"
#include "learn/train/learning_run.h"

namespace emplace::learn {

// What a policy file says of itself.
struct PolicyDescription {
  std::string kind;  // of general_kinds()
  GeneralNetwork network = {};
  std::string card;  // what it was trained on, for people
};

// Safe to call from several threads at once. Tensor operations use one thread each; the caller's
// numbers of threads are as before when a call ends.
class Backend {
 public:
  virtual ~Backend() = default;

  // Throws an Error when it is not cpu, cuda or cuda:N, or when there is no such GPU here.
  virtual void require_device(const std::string& device) const = 0;

  // Rounds of the system on the context's problem until the budget is spent. The context's
  // learning() says where to compute and where curves and checkpoints go; whatever is evaluated is
  // offered to its incumbent. Same system, problem and rng: same result.
  virtual void learn(const System& system, PlaceContext& context, const Budget& budget,
                     const LearningRun& run, const Rng& rng) const = 0;

  // On a rank that helps with that: what the context's learning().task says.
  virtual void help(const System& system, PlaceContext& context, const Budget& budget,
                    const LearningRun& run, const Rng& rng) const = 0;

  // One policy for many graphs. `begin_from` may be a policy file's bytes; `card` is what the new
  // file says of itself.
  virtual TrainedPolicy train_on_graphs(std::vector<TrainingTask> tasks,
                                        const MultiGraphSettings& settings,
                                        const std::string& begin_from, const std::string& card,
                                        const Budget& budget, const Rng& rng,
                                        const TrainingHooks& hooks) const = 0;
  // Helps with that on another rank: the same tasks, whose examples and references are not used,
  // and the same settings and rng.
  virtual std::unique_ptr<TrainingHelper> help_to_train(std::vector<TrainingTask> tasks,
                                                        const MultiGraphSettings& settings,
                                                        const Rng& rng, int threads) const = 0;
  // The placement as an example to imitate: devices that are alike in the order in which the
  // forward pass comes to them.
  virtual Placement in_order(const Problem& problem, const Placement& placement) const = 0;

  // Throws an Error that names the file and what is wrong with the bytes.
  virtual PolicyDescription describe_policy(std::string_view bytes,
                                            const std::string& file_name) const = 0;
};

// Loads the library with the first call. Throws an Error that says who needs it, "gdp",
// when that fails; a later call tries again.
const Backend& backend(const std::string& needed_by);

}  // namespace emplace::learn
