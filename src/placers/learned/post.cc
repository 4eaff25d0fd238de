// Post: a softmax over devices for every group, taught by PPO and refitted by cross-entropy.
#include <algorithm>
#include <cmath>

#include "placers/learned/support/learned.h"

#include "learn/learners/cross_entropy.h"
#include "learn/learners/ppo.h"
#include "learn/learners/reinforce.h"
#include "learn/policies/table.h"
#include "learn/units/groupings.h"

namespace emplace {
namespace {

// Below it the table has all but decided: what is left of the budget is better spent on a new one.
constexpr double kFrozenEntropy = 0.01;

class Post final : public Placer {
 public:
  struct Options : LearnedOptions {
    std::string learner = "post";
    std::int64_t groups = 200;
    std::int64_t samples = 20;
    std::int64_t refit = 200;
    double elite = 0.1;
    double mix = 0.005;
    std::int64_t epochs = 10;
    double lr = 0;
    double kl = 0.1;
    bool restarts = true;
  };
  static OptionSchema<Options> schema() {
    return with_learned_options(
        OptionSchema<Options>{}
            .choice("learner", &Options::learner, {"post", "ppo", "ce", "pg"},
                    "Both as published, PPO alone, cross-entropy alone, or policy gradient.")
            .integer("groups", &Options::groups, 1, 100'000, "Groups of ops, at most.")
            .integer("samples", &Options::samples, 1, 10'000, "K: placements per PPO update.")
            .integer("refit", &Options::refit, 2, 1'000'000, "N: placements per refit.")
            .real("elite", &Options::elite, 0.001, 1, "Share of them that a refit keeps.")
            .real("mix", &Options::mix, 0, 1, "Uniform share after a refit: epsilon.")
            .integer("epochs", &Options::epochs, 1, 1000, "Gradient steps per update.")
            .real("lr", &Options::lr, 0, 100,
                  "Rate of plain gradient ascent; 0: 0.3, of the policy gradient 2.")
            .real("kl", &Options::kl, 1e-6, 10, "Divergence per decision that an update aims at.")
            .flag("restarts", &Options::restarts,
                  "Begin anew when the policy has all but decided."));
  }
  explicit Post(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const Problem& problem = context.problem();
    const auto make = [&](const std::string& device, Rng&) {
      const learn::ColocationRules rules{.most_units = options_.groups};
      return learn::sample_and_learn(
          learn::table_policy(learn::group_as_colocrl(problem, rules), device), learner(problem),
          {.imitation = {.learning_rate = 0.1},
           .restart_entropy = options_.restarts ? frozen_entropy(problem) : 0});
    };
    return place_by_learning("post", context, budget, rng, options_, make);
  }

 private:
  // A refit's uniform share keeps the entropy above its own.
  double frozen_entropy(const Problem& problem) const {
    const double share = options_.mix / static_cast<double>(problem.num_devices());
    const double others = share * (problem.num_devices() - 1.0);
    if (others <= 0 || options_.learner == "ppo" || options_.learner == "pg") return kFrozenEntropy;
    const double mixed = -(1 - others) * std::log(1 - others) - others * std::log(share);
    return std::max(kFrozenEntropy, 1.5 * mixed);
  }

  learn::LearnerPtr learner(const Problem& problem) const {
    const learn::CostSettings cost{.scale = learn::CostScale::kRelative,
                                   .shortage = learn::Shortage::kPenalty};
    const double rate = options_.lr > 0 ? options_.lr : options_.learner == "pg" ? 2 : 0.3;
    const learn::OptimizerSettings steps{.adam = false, .learning_rate = rate};
    const learn::PpoSettings ppo{.batch = options_.samples,
                                 .epochs = options_.epochs,
                                 .optimizer = steps,
                                 .cost = cost,
                                 .clip = 0,
                                 .kl_target = options_.kl};
    const learn::CrossEntropySettings refit{.batch = options_.samples,
                                            .refit_after = options_.refit,
                                            .elite_share = options_.elite,
                                            .uniform_share = options_.mix,
                                            .cost = cost};
    if (options_.learner == "ppo") return learn::ppo(problem, ppo);
    if (options_.learner == "ce") return learn::cross_entropy(problem, refit);
    if (options_.learner == "pg") {
      return learn::reinforce(problem,
                              {.batch = options_.samples, .optimizer = steps, .cost = cost});
    }
    return learn::ppo_and_cross_entropy(problem, refit, ppo);
  }

  Options options_;
};

}  // namespace

EMPLACE_PLACER(post, Post, .family = "learned",
               .summary = "Independent softmaxes taught by PPO and cross-entropy together.",
               .reference = "Gao, Chen, Li, NeurIPS 2018", .randomized = true)

}  // namespace emplace
