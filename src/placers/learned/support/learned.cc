#include "placers/learned/support/learned.h"

#include <algorithm>
#include <array>
#include <variant>

#include "base/error.h"

#include "placers/local/frame.h"
#include "placers/local/nested.h"
#include "placers/local/starts.h"

#include "learn/backend.h"

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

// What controllers cannot do yet.
void check_controllers(const std::string& key, PlaceContext& context, const learn::System& system) {
  const auto* sampling = std::get_if<learn::SamplingSystem>(&system);
  if (sampling == nullptr || !sampling->has_parameter_server()) return;
  if (!std::holds_alternative<learn::ReinforceSettings>(sampling->learner)) {
    fail_option(
        "{}: controllers with a parameter server learn by REINFORCE: expected "
        "learner=reinforce",
        key);
  }
  if (context.evaluator().measures() && context.learning().crew == nullptr) {
    fail_option(
        "{}: the controllers of one process cannot measure at the same time: expected ranks with "
        "devices of their own, or controllers=1 and workers=0",
        key);
  }
}

// Searches are by the simulator, whose word does not count where steps are measured.
void check_searches(const std::string& key, PlaceContext& context, const LearnedOptions& options) {
  if (!context.evaluator().measures()) return;
  if (options.polish) {
    fail_option("{}: polish=true searches by the simulator; expected polish=false here", key);
  }
  if (options.warm_start == "auto") {
    fail_option(
        "{}: warm_start=auto searches by the simulator; expected warm_start=none, given or expert "
        "here",
        key);
  }
}

}  // namespace

learn::System with_policy(const std::string& kind, const GeneralOptions& options,
                          learn::System system) {
  if (options.policy.empty()) {
    if (options.finetune > 0) fail_option("{}: finetune needs a policy to begin from", kind);
    return system;
  }
  return learn::TrainedSystem{.kind = kind,
                              .policy = options.policy,
                              .finetune = options.finetune,
                              .proposals = options.proposals,
                              .prior = options.prior};
}

PlaceResult place_by_learning(const std::string& key, PlaceContext& context, const Budget& given,
                              Rng rng, const LearnedOptions& options, const learn::System& system) {
  const learn::Backend& backend = learn::backend(key);
  backend.require_device(context.learning().device);
  const Budget budget = given.or_default();
  if (context.learning().task != nullptr) {
    backend.help(system, context, budget, {.key = key}, rng);
    return {};
  }
  check_controllers(key, context, system);
  check_searches(key, context, options);
  begin_search(context);
  for (const Solution& start : context.starts()) context.incumbent().offer(start);
  const bool resumes = !context.learning().resume.empty();
  if (resumes || worth_searching(context, budget)) {
    learn::LearningRun run{.key = key};
    if (!resumes) run.begin_from = warm_start(options.warm_start, context, budget, rng.split(1));
    const double kept = options.polish ? kPolishShare : 0;
    backend.learn(system, context, without_share(budget, context, kept), run, rng);
  }
  bool learned_nothing = false;
  if (!context.incumbent().best()) {
    // Nothing that was sampled can run, for want of links, or there was nothing to choose.
    const std::array<std::string, 1> one_device{"single"};
    starts_of(one_device, context, budget, rng.split(4));
    learned_nothing = !resumes && budget.spent(0);
  }
  if (options.polish) polish_best(context, budget, rng.split(5));
  PlaceResult result = end_search(context);
  if (learned_nothing) {
    result.notes.push_back(
        fmt::format("{} had no time to try a single placement: the answer is the best that one "
                    "device can do; more time would let it learn",
                    key));
  }
  return result;
}

}  // namespace emplace
