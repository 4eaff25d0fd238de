#include "placers/learned/support/learned.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/read_bytes.h"

#include "placers/local/frame.h"
#include "placers/local/nested.h"
#include "placers/local/starts.h"

#include "learn/blas.h"
#include "learn/general/general_method.h"
#include "learn/general/shipped.h"
#include "learn/nn/device.h"
#include "learn/train/trainer.h"

namespace emplace {
namespace {

// Of the budget: for the placer that a warm start comes from, and for the search at the end.
constexpr double kWarmStartShare = 0.2;
constexpr double kPolishShare = 0.2;

std::optional<Placement> warm_start(const std::string& source, PlaceContext& context,
                                    const Budget& budget, const Rng& rng) {
  if (source == "none") return {};
  if (source == "given") {
    if (context.starts().empty()) {
      fail_option("warm_start=given needs a placement to begin from, and there is none");
    }
    return context.starts().front().placement;
  }
  if (source == "auto") {
    run_nested("auto", {}, context, without_share(budget, context, 1 - kWarmStartShare), rng);
    return context.incumbent().best()->placement;
  }
  const std::array<std::string, 1> placers{source};
  const std::vector<Solution> found = starts_of(placers, context, budget, rng);
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

PlaceResult place_by_learning(const std::string& key, PlaceContext& context, const Budget& given,
                              Rng rng, const LearnedOptions& options, const MakeMethod& make) {
  learn::require_device(context.learning().device);
  learn::prepare_tensor_operations();
  const Budget budget = given.or_default();
  begin_search(context);
  for (const Solution& start : context.starts()) context.incumbent().offer(start);
  const bool resumes = !context.learning().resume.empty();
  if (resumes || worth_searching(context, budget)) {
    learn::TrainerSettings settings{.key = key};
    if (!resumes) {
      settings.begin_from = warm_start(options.warm_start, context, budget, rng.split(1));
    }
    Rng weights = rng.split(2);
    const learn::MethodPtr method = make(context.learning().device, weights);
    const double kept = options.polish ? kPolishShare : 0;
    learn::Environment environment(context, without_share(budget, context, kept), key);
    learn::train(*method, environment, rng.split(3), settings);
  }
  if (!context.incumbent().best()) {
    // Nothing that was sampled can run, for want of links, or there was nothing to choose.
    const std::array<std::string, 1> one_device{"single"};
    starts_of(one_device, context, budget, rng.split(4));
  }
  if (options.polish) polish_best(context, budget, rng.split(5));
  return end_search(context);
}

}  // namespace emplace
