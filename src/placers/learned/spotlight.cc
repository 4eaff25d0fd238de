// Spotlight: ColocRL's network and groups, taught by PPO with an adaptive KL penalty.
#include "placers/learned/support/sequence_options.h"

namespace emplace {
namespace {

class Spotlight final : public Placer {
 public:
  struct Options : SequenceOptions<learn::PpoSettings> {
    Options() {
      learner.cost = {.scale = learn::CostScale::kSeconds, .shortage = learn::Shortage::kPenalty};
      learner.clip = 0;
      learner.kl_target = 0.01;
    }
    bool policy_gradient = false;
  };
  static OptionSchema<Options> schema() {
    using Learner = learn::PpoSettings;
    // Groups and network are ColocRL's, with which the paper compares; of its own it says neither
    // batch, rate, divergence nor what a placement costs that does not fit: the first and the third
    // are ours, the others ColocRL's.
    return with_sequence_options(
               OptionSchema<Options>{}
                   .choice("learner", &Options::policy_gradient, {{"ppo", false}, {"pg", true}},
                           "As published, or policy gradient for comparison.")
                   .integer("epochs", nested(&Options::learner, &Learner::epochs), 1, 1000,
                            "Gradient steps per update.")
                   .real("kl", nested(&Options::learner, &Learner::kl_target), 1e-6, 10,
                         "Divergence per decision that an update aims at.")
                   .real("penalty",
                         nested(&Options::learner, &Learner::cost, &learn::CostSettings::penalty),
                         0, 1e6, "Cost of lacking a whole device's memory, in serial step times."))
        .paper({{"epochs", "10"},
                {"groups", "280"},
                {"largest", "1"},
                {"features", "types_and_shapes"},
                {"waves", "false"},
                {"width", "512"},
                {"sees_group", "false"},
                {"order", "topological"},
                {"blocks", "0"},
                {"lr", "0.001"},
                {"shortage", "signal"},
                {"restarts", "false"}});
  }
  explicit Spotlight(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    learn::LearnerSettings learner = options_.learner;
    if (options_.policy_gradient) learner = learn::reinforce_as(options_.learner);
    return place_by_learning("spotlight", context, budget, rng, options_,
                             sequence_system(options_, learner));
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(spotlight, Spotlight, .family = "learned",
               .summary = "An attentional LSTM over groups taught by PPO with a KL penalty.",
               .reference = "Gao, Chen, Li, ICML 2018", .randomized = true, .learns = true)

}  // namespace emplace
