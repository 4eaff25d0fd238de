// HDP: a learned grouper and a sequence-to-sequence placer, taught together by REINFORCE with a
// moving baseline (Mirhoseini et al., ICLR 2018). One grouping and four placements of it a round.
#include "placers/learned/support/learned.h"

#include "learn/learners/ppo.h"
#include "learn/learners/reinforce.h"
#include "learn/policies/grouper_placer.h"
#include "learn/units/groupings.h"

namespace emplace {
namespace {

class Hdp final : public Placer {
 public:
  struct Options : LearnedOptions {
    std::int64_t groups = 0;
    std::int64_t width = 512;
    std::int64_t hidden = 64;
    std::string first_groups = "slices";
    bool sees_group = true;
    double blocks = 16;
    std::int64_t groupings = 1;
    std::int64_t samples = 4;
    std::int64_t noisy_rounds = 750;
    std::string learner = "reinforce";
    std::int64_t epochs = 4;
    double lr = 0.1;
    double clip = 1;
    std::string shortage = "signal";
  };
  static OptionSchema<Options> schema() {
    return with_learned_options(
        OptionSchema<Options>{}
            .integer("groups", &Options::groups, 0, 4096,
                     "That the grouper may use; 0: 20 a device, 256 at most.")
            .integer("width", &Options::width, 2, 4096, "Of the placer's states; even.")
            .integer("hidden", &Options::hidden, 2, 4096, "Of the grouper's hidden layer.")
            .choice("first_groups", &Options::first_groups, {"slices", "weights", "drawn"},
                    "Pieces of what exchanges much, or as random weights have it (the paper); or "
                    "drawn once, and never learned.")
            .flag("sees_group", &Options::sees_group,
                  "The decoder gets the features of the group that it decides about.")
            .real("blocks", &Options::blocks, 0, 1e9,
                  "How often the device changes along the groups at first; 0: as chance has it.")
            .integer("groupings", &Options::groupings, 1, 1024, "m: in an update.")
            .integer("samples", &Options::samples, 1, 1024, "k: placements of each grouping.")
            .integer("noisy_rounds", &Options::noisy_rounds, 0, 1'000'000'000,
                     "Updates with noise on the logits.")
            .choice("learner", &Options::learner, {"reinforce", "ppo"},
                    "The paper's, or PPO with clipping.")
            .integer("epochs", &Options::epochs, 1, 1000, "PPO's gradient steps in an update.")
            .real("lr", &Options::lr, 1e-6, 10, "Adam's learning rate.")
            .real("clip", &Options::clip, 0, 1e9, "Largest norm of a gradient; 0: any.")
            .choice("shortage", &Options::shortage, {"signal", "penalty"},
                    "What does not fit costs as 100 s (the paper), or by how much is missing."));
  }
  explicit Hdp(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const Problem& problem = context.problem();
    const auto make = [&](const std::string& device, Rng& weights) {
      return learn::sample_and_learn(policy(problem, device, weights), learner(problem));
    };
    return place_by_learning("hdp", context, budget, rng, options_, make);
  }

 private:
  learn::PolicyPtr policy(const Problem& problem, const std::string& device, Rng& rng) const {
    learn::GrouperPlacerSettings settings;
    settings.groups = options_.groups;
    settings.hidden = options_.hidden;
    settings.width = options_.width + options_.width % 2;
    settings.share_grouping = options_.samples;
    if (options_.first_groups == "weights") settings.first_groups = learn::FirstGroups::kWeights;
    if (options_.first_groups == "drawn") settings.first_groups = learn::FirstGroups::kDrawn;
    settings.decoder_sees_group = options_.sees_group;
    settings.blocks = options_.blocks;
    settings.noisy_rounds = options_.noisy_rounds;
    settings.shards = options_.groupings > 1 ? 2 : 1;
    return learn::grouper_placer_policy(learn::group_by_colocation(problem), settings, device, rng);
  }

  learn::LearnerPtr learner(const Problem& problem) const {
    const learn::OptimizerSettings optimizer{.learning_rate = options_.lr,
                                             .clip_norm = options_.clip};
    learn::CostSettings cost;
    if (options_.shortage == "penalty") cost.shortage = learn::Shortage::kPenalty;
    const std::int64_t batch = options_.groupings * options_.samples;
    if (options_.learner == "ppo") {
      return learn::ppo(
          problem,
          {.batch = batch, .epochs = options_.epochs, .optimizer = optimizer, .cost = cost});
    }
    return learn::reinforce(problem, {.batch = batch, .optimizer = optimizer, .cost = cost});
  }

  Options options_;
};

}  // namespace

EMPLACE_PLACER(hdp, Hdp, .family = "learned",
               .summary = "A learned grouper, and a sequence-to-sequence placer of its groups.",
               .reference = "Mirhoseini et al., ICLR 2018", .randomized = true)

}  // namespace emplace
