#include "placers/learned/support/learned.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/read_bytes.h"

#include "placers/local/frame.h"
#include "placers/local/nested.h"
#include "placers/local/starts.h"

#include "learn/blas.h"
#include "learn/nn/device.h"
#include "learn/general/general_method.h"
#include "learn/general/shipped.h"
#include "learn/train/trainer.h"

namespace emplace {
namespace {

// Of the budget: for the placer that a warm start comes from, and for the search at the end.
constexpr double kWarmStartShare = 0.2;
constexpr double kPolishShare = 0.2;

std::optional<Placement> warm_start(const std::string& source, Evaluator& evaluator,
                                    const Budget& budget, const Rng& rng) {
  if (source == "none") return {};
  if (source == "given") {
    if (evaluator.starts().empty()) {
      fail_option("warm_start=given needs a placement to begin from, and there is none");
    }
    return evaluator.starts().front().placement;
  }
  if (source == "auto") {
    run_nested("auto", {}, evaluator, without_share(budget, evaluator, 1 - kWarmStartShare), rng);
    return evaluator.incumbent().best()->placement;
  }
  const std::array<std::string, 1> placers{source};
  const std::vector<Solution> found = starts_of(placers, evaluator, budget, rng);
  return found.front().placement;
}

}  // namespace

MakeMethod with_policy(const std::string& kind, const Problem& problem,
                       const GeneralOptions& options, MakeMethod make) {
  if (options.policy.empty()) {
    if (options.finetune > 0) fail_option("{}: finetune needs a policy to begin from", kind);
    return make;
  }
  return [&problem, kind, options](const std::string& device, Rng& rng) {
    const bool shipped = options.policy == "shipped";
    const std::string name = shipped ? "the shipped policy" : options.policy;
    return learn::general_method(
        problem, shipped ? learn::shipped_policy(kind) : read_bytes(options.policy), name,
        {.kind = kind, .rounds = options.finetune, .proposals = options.proposals}, device, rng);
  };
}

PlaceResult place_by_learning(const std::string& key, Evaluator& evaluator, const Budget& given,
                              Rng rng, const LearnedOptions& options, const MakeMethod& make) {
  learn::require_device(evaluator.training().device);
  learn::prepare_tensor_operations();
  const Budget budget = given.or_default();
  begin_search(evaluator);
  for (const Solution& start : evaluator.starts()) evaluator.incumbent().offer(start);
  const bool resumes = !evaluator.training().resume.empty();
  if (resumes || worth_searching(evaluator, budget)) {
    learn::TrainerSettings settings{.key = key};
    if (!resumes) {
      settings.begin_from = warm_start(options.warm_start, evaluator, budget, rng.split(1));
    }
    Rng weights = rng.split(2);
    const learn::MethodPtr method = make(evaluator.training().device, weights);
    const double kept = options.polish ? kPolishShare : 0;
    learn::Environment environment(evaluator, without_share(budget, evaluator, kept), key);
    learn::train(*method, environment, rng.split(3), settings);
  }
  if (!evaluator.incumbent().best()) {
    // Nothing that was sampled can run, for want of links, or there was nothing to choose.
    const std::array<std::string, 1> one_device{"single"};
    starts_of(one_device, evaluator, budget, rng.split(4));
  }
  if (options.polish) polish_best(evaluator, budget, rng.split(5));
  return end_search(evaluator);
}

}  // namespace emplace
