// HDP: a learned grouper and a sequence-to-sequence placer, taught together by REINFORCE with a
// moving baseline (Mirhoseini et al., ICLR 2018). One grouping and four placements of it a round.
#include "placers/learned/support/learned.h"

namespace emplace {
namespace {

class Hdp final : public Placer {
 public:
  struct Options : LearnedOptions {
    learn::GrouperPlacerSettings network = {};
    std::int64_t groupings = 1;
    bool with_ppo = false;
    learn::PpoSettings learner = {.optimizer = {.learning_rate = 0.1, .clip_norm = 1}};
  };
  static OptionSchema<Options> schema() {
    using Network = learn::GrouperPlacerSettings;
    using Learner = learn::PpoSettings;
    using Steps = learn::OptimizerSettings;
    using learn::FirstGroups;
    return with_learned_options(
        OptionSchema<Options>{}
            .integer("groups", nested(&Options::network, &Network::groups), 0, 4096,
                     "That the grouper may use; 0: 20 a device, 256 at most.")
            .integer("width", nested(&Options::network, &Network::width), 2, 4096,
                     "Of the placer's states; even.")
            .integer("hidden", nested(&Options::network, &Network::hidden), 2, 4096,
                     "Of the grouper's hidden layer.")
            .choice("first_groups", nested(&Options::network, &Network::first_groups),
                    {{"slices", FirstGroups::kSlices},
                     {"weights", FirstGroups::kWeights},
                     {"drawn", FirstGroups::kDrawn}},
                    "Pieces of what exchanges much, or as random weights have it (the paper); or "
                    "drawn once, and never learned.")
            .flag("sees_group", nested(&Options::network, &Network::decoder_sees_group),
                  "The decoder gets the features of the group that it decides about.")
            .real("blocks", nested(&Options::network, &Network::blocks), 0, 1e9,
                  "How often the device changes along the groups at first; 0: as chance has it.")
            .integer("groupings", &Options::groupings, 1, 1024, "m: in an update.")
            .integer("samples", nested(&Options::network, &Network::share_grouping), 1, 1024,
                     "k: placements of each grouping.")
            .integer("noisy_rounds", nested(&Options::network, &Network::noisy_rounds), 0,
                     1'000'000'000, "Updates with noise on the logits.")
            .choice("learner", &Options::with_ppo, {{"reinforce", false}, {"ppo", true}},
                    "The paper's, or PPO with clipping.")
            .integer("epochs", nested(&Options::learner, &Learner::epochs), 1, 1000,
                     "PPO's gradient steps in an update.")
            .real("lr", nested(&Options::learner, &Learner::optimizer, &Steps::learning_rate), 1e-6,
                  10, "Adam's learning rate.")
            .real("clip", nested(&Options::learner, &Learner::optimizer, &Steps::clip_norm), 0, 1e9,
                  "Largest norm of a gradient; 0: any.")
            .choice("shortage",
                    nested(&Options::learner, &Learner::cost, &learn::CostSettings::shortage),
                    {{"signal", learn::Shortage::kSignal}, {"penalty", learn::Shortage::kPenalty}},
                    "What does not fit costs as 100 s (the paper), or by how much is missing."));
  }
  explicit Hdp(const Options& options) : options_(options) {
    options_.network.width += options_.network.width % 2;
    options_.network.shards = options_.groupings > 1 ? 2 : 1;
    options_.learner.batch = options_.groupings * options_.network.share_grouping;
  }

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    learn::SamplingSystem system{.policy = options_.network,
                                 .learner = learn::reinforce_as(options_.learner)};
    if (options_.with_ppo) system.learner = options_.learner;
    return place_by_learning("hdp", context, budget, rng, options_, system);
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(hdp, Hdp, .family = "learned",
               .summary = "A learned grouper, and a sequence-to-sequence placer of its groups.",
               .reference = "Mirhoseini et al., ICLR 2018", .randomized = true, .learns = true)

}  // namespace emplace
