// Spotlight: ColocRL's network and groups, taught by PPO with an adaptive KL penalty.
#include "placers/learned/support/sequence_options.h"

#include "learn/learners/ppo.h"
#include "learn/learners/reinforce.h"

namespace emplace {
namespace {

class Spotlight final : public Placer {
 public:
  struct Options : SequenceOptions {
    std::string learner = "ppo";
    std::int64_t epochs = 4;
    double kl = 0.01;
    double penalty = 10;
  };
  static OptionSchema<Options> schema() {
    return with_sequence_options(
        OptionSchema<Options>{}
            .choice("learner", &Options::learner, {"ppo", "pg"},
                    "As published, or policy gradient for comparison.")
            .integer("epochs", &Options::epochs, 1, 1000, "Gradient steps per update.")
            .real("kl", &Options::kl, 1e-6, 10, "Divergence per decision that an update aims at.")
            .real("penalty", &Options::penalty, 0, 1e6,
                  "Cost of lacking a whole device's memory, in serial step times."));
  }
  explicit Spotlight(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const Problem& problem = context.problem();
    const auto make = [&](const std::string& device, Rng& weights) {
      return learn_sequences(problem, options_, learner(problem), device, weights);
    };
    return place_by_learning("spotlight", context, budget, rng, options_, make);
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
                                        .entropy_weight = options_.entropy});
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
