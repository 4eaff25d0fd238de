// Post: a softmax over devices for every group, taught by PPO and refitted by cross-entropy.
#include <algorithm>
#include <cmath>

#include "placers/learned/support/learned.h"

namespace emplace {
namespace {

// Below it the table has all but decided: what is left of the budget is better spent on a new one.
constexpr double kFrozenEntropy = 0.01;
// Rates of plain gradient ascent where none is given.
constexpr double kPpoRate = 0.3;
constexpr double kPolicyGradientRate = 2;

enum class Teaching { kPost, kPpo, kCrossEntropy, kPolicyGradient };

class Post final : public Placer {
 public:
  struct Options : LearnedOptions {
    Teaching learner = Teaching::kPost;
    learn::ColocationRules units = {.most_units = 200};
    learn::PpoSettings ppo = {
        .batch = 20,
        .epochs = 10,
        .optimizer = {.adam = false, .learning_rate = 0},
        .cost = {.scale = learn::CostScale::kRelative, .shortage = learn::Shortage::kPenalty},
        .clip = 0,
        .kl_target = 0.1};
    learn::CrossEntropySettings refit = {
        .refit_after = 200, .elite_share = 0.1, .uniform_share = 0.005};
    bool restarts = true;
  };
  static OptionSchema<Options> schema() {
    using Ppo = learn::PpoSettings;
    using Refit = learn::CrossEntropySettings;
    return with_learned_options(
               OptionSchema<Options>{}
                   .choice("learner", &Options::learner,
                           {{"post", Teaching::kPost},
                            {"ppo", Teaching::kPpo},
                            {"ce", Teaching::kCrossEntropy},
                            {"pg", Teaching::kPolicyGradient}},
                           "Both as published, PPO alone, cross-entropy alone, or policy gradient.")
                   .integer("groups", nested(&Options::units, &learn::ColocationRules::most_units),
                            1, 100'000, "Groups of ops, at most.")
                   .real("largest", nested(&Options::units, &learn::ColocationRules::largest_share),
                         0, 1,
                         "Share of all time that a group may have by the rules of colocation, sole "
                         "consumers and layers; 0: 1.5 times the mean group's.")
                   .integer("samples", nested(&Options::ppo, &Ppo::batch), 1, 10'000,
                            "K: placements per PPO update.")
                   .integer("refit", nested(&Options::refit, &Refit::refit_after), 2, 1'000'000,
                            "N: placements per refit, after which K counts anew.")
                   .real("elite", nested(&Options::refit, &Refit::elite_share), 0.001, 1,
                         "Share of them that a refit keeps.")
                   .real("mix", nested(&Options::refit, &Refit::uniform_share), 0, 1,
                         "Uniform share after a refit: epsilon.")
                   .integer("epochs", nested(&Options::ppo, &Ppo::epochs), 1, 1000,
                            "Gradient steps per update.")
                   .real("lr",
                         nested(&Options::ppo, &Ppo::optimizer,
                                &learn::OptimizerSettings::learning_rate),
                         0, 100, "Rate of plain gradient ascent; 0: 0.3, of the policy gradient 2.")
                   .real("kl", nested(&Options::ppo, &Ppo::kl_target), 1e-6, 10,
                         "Divergence per decision that an update aims at.")
                   .choice("costs", nested(&Options::ppo, &Ppo::cost, &learn::CostSettings::scale),
                           {{"relative", learn::CostScale::kRelative},
                            {"seconds", learn::CostScale::kSeconds}},
                           "Of placements: in times of all ops one by one, or in seconds.")
                   .choice("shortage",
                           nested(&Options::ppo, &Ppo::cost, &learn::CostSettings::shortage),
                           {{"signal", learn::Shortage::kSignal},
                            {"penalty", learn::Shortage::kPenalty}},
                           "A placement that does not fit costs as one of 100 s, or by what is "
                           "missing.")
                   .real("baseline_decay", nested(&Options::ppo, &Ppo::baseline_decay), 0, 1,
                         "Of the moving average that costs are compared with; 1: the mean of all.")
                   .flag("baseline_of_all", nested(&Options::refit, &Refit::tells_baseline),
                         "Placements of refits count for it too.")
                   .flag("restarts", &Options::restarts,
                         "Begin anew when the policy has all but decided."))
        // Of these the paper gives the baseline alone. Epsilon, the rate and the divergence are
        // what makes its Algorithm 1 work as described on models of seconds a step; groups are
        // ColocRL's; what does not fit costs 100 s, as it does there.
        .paper({{"groups", "280"},
                {"largest", "1"},
                {"mix", "0.1"},
                {"lr", "1"},
                {"kl", "0.03"},
                {"costs", "seconds"},
                {"shortage", "signal"},
                {"baseline_decay", "1"},
                {"baseline_of_all", "true"},
                {"restarts", "false"}});
  }
  explicit Post(const Options& options) : options_(options) {
    options_.refit.batch = options_.ppo.batch;
    options_.refit.cost = options_.ppo.cost;
    double& rate = options_.ppo.optimizer.learning_rate;
    if (rate <= 0) {
      rate = options_.learner == Teaching::kPolicyGradient ? kPolicyGradientRate : kPpoRate;
    }
  }

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const double frozen = options_.restarts ? frozen_entropy(context.problem()) : 0;
    const learn::SamplingSystem system{
        .units = options_.units,
        .policy = learn::TableSettings{},
        .learner = learner(),
        .rounds = {.imitation = {.learning_rate = 0.1}, .restart_entropy = frozen}};
    return place_by_learning("post", context, budget, rng, options_, system);
  }

 private:
  // A refit's uniform share keeps the entropy above its own.
  double frozen_entropy(const Problem& problem) const {
    const bool refits =
        options_.learner == Teaching::kPost || options_.learner == Teaching::kCrossEntropy;
    const double share = options_.refit.uniform_share / static_cast<double>(problem.num_devices());
    const double others = share * (problem.num_devices() - 1.0);
    if (others <= 0 || !refits) return kFrozenEntropy;
    const double mixed = -(1 - others) * std::log(1 - others) - others * std::log(share);
    return std::max(kFrozenEntropy, 1.5 * mixed);
  }

  learn::LearnerSettings learner() const {
    switch (options_.learner) {
      case Teaching::kPpo:
        return options_.ppo;
      case Teaching::kCrossEntropy:
        return options_.refit;
      case Teaching::kPolicyGradient:
        return learn::reinforce_as(options_.ppo);
      case Teaching::kPost:
        break;
    }
    return learn::PpoAndCrossEntropySettings{.refit = options_.refit, .ppo = options_.ppo};
  }

  Options options_;
};

}  // namespace

EMPLACE_PLACER(post, Post, .family = "learned",
               .summary = "Independent softmaxes taught by PPO and cross-entropy together.",
               .reference = "Gao, Chen, Li, NeurIPS 2018", .randomized = true, .learns = true)

}  // namespace emplace
