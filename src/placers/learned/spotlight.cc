// Spotlight: ColocRL's network and groups, taught by PPO with an adaptive KL penalty.
#include <limits>

#include "placers/learned/support/learned.h"

#include "learn/groupings.h"
#include "learn/learners/ppo.h"
#include "learn/learners/reinforce.h"
#include "learn/policies/seq2seq.h"

namespace emplace {
namespace {

// Below it the network has all but decided: what is left of the budget is better spent on a new
// one.
constexpr double kFrozenEntropy = 0.01;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

class Spotlight final : public Placer {
 public:
  struct Options : LearnedOptions {
    std::string learner = "ppo";
    std::int64_t groups = 200;
    std::int64_t width = 64;
    bool sees_group = true;
    std::string order = "locality";
    double blocks = 16;
    std::int64_t samples = 20;
    std::int64_t epochs = 4;
    double lr = 3e-3;
    double clip = 1;
    double kl = 0.01;
    double entropy = 0;
    double penalty = 10;
    bool restarts = true;
  };
  static OptionSchema<Options> schema() {
    return with_learned_options(
        OptionSchema<Options>{}
            .choice("learner", &Options::learner, {"ppo", "pg"},
                    "As published, or policy gradient for comparison.")
            .integer("groups", &Options::groups, 1, 2000, "Groups of ops, at most.")
            .integer("width", &Options::width, 1, 4096, "Of the LSTM's state.")
            .flag("sees_group", &Options::sees_group,
                  "The decoder gets the features of the group that it decides about.")
            .choice("order", &Options::order, {"locality", "topological"},
                    "Of the groups: those that exchange much together, or as they run.")
            .real("blocks", &Options::blocks, 0, 1e9,
                  "How often the device changes along the sequence at first; 0: as chance has it.")
            .integer("samples", &Options::samples, 1, 10'000, "K: placements per update.")
            .integer("epochs", &Options::epochs, 1, 1000, "Gradient steps per update.")
            .real("lr", &Options::lr, 1e-6, 1, "Adam's learning rate.")
            .real("clip", &Options::clip, 0, 1e6, "Largest norm of a gradient; 0: any.")
            .real("kl", &Options::kl, 1e-6, 10, "Divergence per decision that an update aims at.")
            .real("entropy", &Options::entropy, 0, 10, "Weight of an entropy bonus.")
            .real("penalty", &Options::penalty, 0, 1e6,
                  "Cost of lacking a whole device's memory, in serial step times.")
            .flag("restarts", &Options::restarts,
                  "Begin anew when the policy has all but decided."));
  }
  explicit Spotlight(const Options& options) : options_(options) {}

  PlaceResult place(const Problem& problem, Evaluator& evaluator, const Budget& budget,
                    Rng rng) override {
    const auto make = [&](const std::string& device, Rng& weights) {
      const learn::ColocationRules rules{.most_units = options_.groups};
      return learn::sample_and_learn(
          learn::sequence_policy(learn::group_as_colocrl(problem, rules),
                                 {.width = options_.width,
                                  .decoder_sees_unit = options_.sees_group,
                                  .by_locality = options_.order == "locality",
                                  .blocks = options_.blocks},
                                 device, weights),
          learner(problem), {.restart_entropy = options_.restarts ? kFrozenEntropy : 0});
    };
    return place_by_learning("spotlight", evaluator, budget, rng, options_, make);
  }

 private:
  learn::LearnerPtr learner(const Problem& problem) const {
    const learn::CostSettings cost{.scale = learn::CostScale::kSeconds,
                                   .shortage = learn::Shortage::kPenalty,
                                   .penalty = options_.penalty};
    const learn::OptimizerSettings steps{.learning_rate = options_.lr, .clip_norm = options_.clip};
    if (options_.learner == "pg") {
      return learn::reinforce(problem, {.batch = options_.samples,
                                        .optimizer = steps,
                                        .cost = cost,
                                        .entropy_weight = options_.entropy,
                                        // The penalty says how far each is from fitting.
                                        .mask_failures_after = kNever});
    }
    return learn::ppo(problem, {.batch = options_.samples,
                                .epochs = options_.epochs,
                                .optimizer = steps,
                                .cost = cost,
                                .entropy_weight = options_.entropy,
                                .clip = 0,
                                .kl_target = options_.kl});
  }

  Options options_;
};

}  // namespace

EMPLACE_PLACER(spotlight, Spotlight, .family = "learned",
               .summary = "An attentional LSTM over groups taught by PPO with a KL penalty.",
               .reference = "Gao, Chen, Li, ICML 2018", .randomized = true)

}  // namespace emplace
