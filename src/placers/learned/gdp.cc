// GDP: a graph network and attention over all ops place the whole graph in one pass, taught by PPO.
//
// Published are the parts: GraphSAGE with max pooling, attention in segments without positions,
// superposition, no grouping, PPO and the root of the step time as cost; not their sizes. Those
// here are the largest that learn from thousands of ops in minutes on a processor. The paper counts
// a placement that does not fit as a fixed bad one (`shortage=signal`), from which nothing is
// learned where no sample fits; here it costs more the more is missing.
#include "placers/learned/support/learned.h"

namespace emplace {
namespace {

// Below it the policy has all but decided: what is left of the budget is better spent on a new one.
constexpr double kFrozenEntropy = 0.003;
// The paper's reward of an invalid placement is -10: the root of 100 s.
constexpr double kFailingSeconds = 100;
// Costs fall fast; a baseline that lags makes every sample look good.
constexpr double kBaselineDecay = 0.5;

class Gdp final : public Placer {
 public:
  struct Options : GeneralOptions {
    learn::SegmentAttentionSettings network = {.neighbourhoods = 200};
    learn::PpoSettings ppo = {.batch = 40,
                              .epochs = 2,
                              .optimizer = {.learning_rate = 1e-4, .clip_norm = 1},
                              .cost = {.scale = learn::CostScale::kSquareRoot,
                                       .shortage = learn::Shortage::kPenalty,
                                       .failing_seconds = kFailingSeconds},
                              .baseline_decay = kBaselineDecay,
                              .entropy_weight = 0.001,
                              .kl_share = 0.01};
    bool restarts = true;
  };
  static OptionSchema<Options> schema() {
    using Network = learn::SegmentAttentionSettings;
    using Ppo = learn::PpoSettings;
    return with_general_options(
        OptionSchema<Options>{}
            .integer("width", nested(&Options::network, &Network::width), 1, 4096,
                     "Of attention; a multiple of heads.")
            .integer("layers", nested(&Options::network, &Network::layers), 0, 64,
                     "Blocks of attention.")
            .integer("heads", nested(&Options::network, &Network::heads), 1, 64, "Of each block.")
            .integer("segment", nested(&Options::network, &Network::segment), 1, 100'000,
                     "Ops that see each other.")
            .integer("sage_width", nested(&Options::network, &Network::sage_width), 1, 4096,
                     "Of GraphSAGE.")
            .integer("sage_layers", nested(&Options::network, &Network::sage_layers), 1, 64,
                     "Of GraphSAGE.")
            .integer("coordinates", nested(&Options::network, &Network::coordinates), 0, 256,
                     "Numbers that say where in the graph an op is.")
            .flag("superposition", nested(&Options::network, &Network::superposition),
                  "Condition every dense layer on the whole graph.")
            .real("spread", nested(&Options::network, &Network::spread), 0, 100,
                  "Deviation of the first logits.")
            .integer("neighbourhoods", nested(&Options::network, &Network::neighbourhoods), 0,
                     1'000'000,
                     "Of ops that are drawn with the same random numbers; 0: each by itself.")
            .integer("samples", nested(&Options::ppo, &Ppo::batch), 1, 10'000,
                     "Placements per update.")
            .integer("epochs", nested(&Options::ppo, &Ppo::epochs), 1, 1000,
                     "Gradient steps per update.")
            .real("lr",
                  nested(&Options::ppo, &Ppo::optimizer, &learn::OptimizerSettings::learning_rate),
                  1e-8, 10, "Learning rate at first; then it follows kl.")
            .real("kl", nested(&Options::ppo, &Ppo::kl_share), 0, 10,
                  "How far an update goes, as a share of the entropy; 0: the rate stays.")
            .real("clip", nested(&Options::ppo, &Ppo::clip), 1e-6, 10, "Of PPO's ratios.")
            .real("entropy", nested(&Options::ppo, &Ppo::entropy_weight), 0, 10,
                  "Weight of the entropy.")
            .choice("shortage", nested(&Options::ppo, &Ppo::cost, &learn::CostSettings::shortage),
                    {{"penalty", learn::Shortage::kPenalty}, {"signal", learn::Shortage::kSignal}},
                    "Memory overflow costs by its size, or as a fixed bad step as published.")
            .flag("restarts", &Options::restarts,
                  "Begin anew when the policy has all but decided."));
  }
  explicit Gdp(const Options& options) : options_(options) {
    if (options.network.width % options.network.heads != 0) {
      fail_option("gdp: width must be a multiple of heads");
    }
  }

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const learn::SamplingSystem system{
        .policy = options_.network,
        .learner = options_.ppo,
        .rounds = {.imitation = {.learning_rate = 3e-3},
                   .restart_entropy = options_.restarts ? kFrozenEntropy : 0}};
    return place_by_learning("gdp", context, budget, rng, options_,
                             with_policy("gdp", options_, system));
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(gdp, Gdp, .family = "learned",
               .summary = "GraphSAGE and attention in segments over all ops, taught by PPO.",
               .reference = "Zhou et al. 2019", .randomized = true, .learns = true)

}  // namespace emplace
