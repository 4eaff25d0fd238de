// GDP: a graph network and attention over all ops place the whole graph in one pass, taught by PPO.
//
// Published are the parts: GraphSAGE with max pooling, attention in segments without positions,
// superposition, no grouping, PPO and the root of the step time as cost; not their sizes. Those
// here are the largest that learn from thousands of ops in minutes on a processor. The paper counts
// a placement that does not fit as a fixed bad one (`shortage=signal`), from which nothing is
// learned where no sample fits; here it costs more the more is missing.
#include "placers/learned/support/learned.h"

#include "learn/learners/ppo.h"
#include "learn/policies/segment_attention.h"
#include "learn/units/groupings.h"

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
    std::int64_t width = 32;
    std::int64_t layers = 2;
    std::int64_t heads = 2;
    std::int64_t segment = 64;
    std::int64_t sage_width = 32;
    std::int64_t sage_layers = 3;
    std::int64_t coordinates = 16;
    bool superposition = true;
    double spread = 3;
    std::int64_t neighbourhoods = 200;
    std::int64_t samples = 40;
    std::int64_t epochs = 2;
    double lr = 1e-4;
    double kl = 0.01;
    double clip = 0.2;
    double entropy = 0.001;
    std::string shortage = "penalty";
    bool restarts = true;
  };
  static OptionSchema<Options> schema() {
    return with_general_options(
        OptionSchema<Options>{}
            .integer("width", &Options::width, 1, 4096, "Of attention; a multiple of heads.")
            .integer("layers", &Options::layers, 0, 64, "Blocks of attention.")
            .integer("heads", &Options::heads, 1, 64, "Of each block.")
            .integer("segment", &Options::segment, 1, 100'000, "Ops that see each other.")
            .integer("sage_width", &Options::sage_width, 1, 4096, "Of GraphSAGE.")
            .integer("sage_layers", &Options::sage_layers, 1, 64, "Of GraphSAGE.")
            .integer("coordinates", &Options::coordinates, 0, 256,
                     "Numbers that say where in the graph an op is.")
            .flag("superposition", &Options::superposition,
                  "Condition every dense layer on the whole graph.")
            .real("spread", &Options::spread, 0, 100, "Deviation of the first logits.")
            .integer("neighbourhoods", &Options::neighbourhoods, 0, 1'000'000,
                     "Of ops that are drawn with the same random numbers; 0: each by itself.")
            .integer("samples", &Options::samples, 1, 10'000, "Placements per update.")
            .integer("epochs", &Options::epochs, 1, 1000, "Gradient steps per update.")
            .real("lr", &Options::lr, 1e-8, 10, "Learning rate at first; then it follows kl.")
            .real("kl", &Options::kl, 0, 10,
                  "How far an update goes, as a share of the entropy; 0: the rate stays.")
            .real("clip", &Options::clip, 1e-6, 10, "Of PPO's ratios.")
            .real("entropy", &Options::entropy, 0, 10, "Weight of the entropy.")
            .choice("shortage", &Options::shortage, {"penalty", "signal"},
                    "Memory overflow costs by its size, or as a fixed bad step as published.")
            .flag("restarts", &Options::restarts,
                  "Begin anew when the policy has all but decided."));
  }
  explicit Gdp(const Options& options) : options_(options) {
    if (options.width % options.heads != 0) {
      fail_option("gdp: width must be a multiple of heads");
    }
  }

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const Problem& problem = context.problem();
    const auto make = [&](const std::string& device, Rng& weights) {
      return learn::sample_and_learn(
          learn::segment_attention_policy(learn::group_by_colocation(problem), network(), device,
                                          weights),
          learn::ppo(problem, learner()),
          {.imitation = {.learning_rate = 3e-3},
           .restart_entropy = options_.restarts ? kFrozenEntropy : 0});
    };
    return place_by_learning("gdp", context, budget, rng, options_,
                             with_policy("gdp", problem, options_, make));
  }

 private:
  learn::SegmentAttentionSettings network() const {
    return {.coordinates = options_.coordinates,
            .sage_width = options_.sage_width,
            .sage_layers = options_.sage_layers,
            .width = options_.width,
            .heads = options_.heads,
            .layers = options_.layers,
            .segment = options_.segment,
            .superposition = options_.superposition,
            .spread = options_.spread,
            .neighbourhoods = options_.neighbourhoods};
  }
  learn::PpoSettings learner() const {
    return {.batch = options_.samples,
            .epochs = options_.epochs,
            .optimizer = {.learning_rate = options_.lr, .clip_norm = 1},
            .cost = {.scale = learn::CostScale::kSquareRoot,
                     .shortage = options_.shortage == "signal" ? learn::Shortage::kSignal
                                                               : learn::Shortage::kPenalty,
                     .failing_seconds = kFailingSeconds},
            .baseline_decay = kBaselineDecay,
            .entropy_weight = options_.entropy,
            .clip = options_.clip,
            .kl_share = options_.kl};
  }

  Options options_;
};

}  // namespace

EMPLACE_PLACER(gdp, Gdp, .family = "learned",
               .summary = "GraphSAGE and attention in segments over all ops, taught by PPO.",
               .reference = "Zhou et al. 2019", .randomized = true)

}  // namespace emplace
