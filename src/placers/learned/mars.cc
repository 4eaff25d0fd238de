// Mars (Lan, Chen, Li, ICPP 2021): single ops, a graph encoder pre-trained by deep graph infomax, a
// sequence-to-sequence network over segments of the ops, taught by PPO with clipping. The paper's
// comparison is in the options: no pre-training, and the designs of HDP and GDP under the same PPO.
//
// Of the paper's settings the preset takes what is reported: topological order, 3 layers of 256,
// LSTMs of 512, additive attention, 1000 iterations of pre-training, 20 placements an update, a
// clip of 0.2, a rate of 3e-4 and an entropy's weight of 1e-3. What the network is told of an op
// and what does not fit are not described: types and shapes, and a fixed bad value, are our choice.
#include "base/error.h"

#include "placers/learned/support/gdp_options.h"
#include "placers/learned/support/hdp_options.h"

namespace emplace {
namespace {

// Where all decisions together hold less, in nats, the policy has all but decided: what is left of
// the budget is better spent on a new one.
constexpr double kFrozenTotalEntropy = 2;

enum class Design { kMars, kGrouperPlacer, kEncoderPlacer };

struct MarsOptions : GeneralOptions {
  Design design = Design::kMars;
  bool published_rivals = false;
  learn::SegmentSequenceSettings network = {.encoder_width = 64};
  learn::PpoSettings ppo = {.optimizer = {.learning_rate = 3e-4, .clip_norm = 1},
                            .cost = {.shortage = learn::Shortage::kPenalty},
                            .entropy_weight = 1e-3,
                            .kl_share = 0.01};
  bool restarts = true;
};

OptionSchema<MarsOptions> with_network(OptionSchema<MarsOptions> schema) {
  using Options = MarsOptions;
  using Network = learn::SegmentSequenceSettings;
  return std::move(schema)
      .choice("design", &Options::design,
              {{"mars", Design::kMars},
               {"grouper_placer", Design::kGrouperPlacer},
               {"encoder_placer", Design::kEncoderPlacer}},
              "The policy: Mars's own, HDP's or GDP's, as their placers have them.")
      .choice("rivals", &Options::published_rivals, {{"emplace", false}, {"paper", true}},
              "Whether HDP's and GDP's policies are as we have them, or as published.")
      .integer("width", nested(&Options::network, &Network::width), 2, 4096,
               "Of the sequence network; even.")
      .integer("encoder_width", nested(&Options::network, &Network::encoder_width), 1, 4096,
               "Of the graph encoder.")
      .integer("layers", nested(&Options::network, &Network::encoder_layers), 1, 16,
               "Of the graph encoder.")
      .integer("segment", nested(&Options::network, &Network::segment), 1, 1'000'000,
               "Ops in a segment.")
      .choice(
          "features", nested(&Options::network, &Network::features),
          {{"all", learn::Features::kAll}, {"types_and_shapes", learn::Features::kTypesAndShapes}},
          "What the encoder is told of an op: also what it costs, or not.")
      .flag("waves", nested(&Options::network, &Network::waves),
            "The encoder is told an op's place in the order.")
      .choice("attention", nested(&Options::network, &Network::additive_attention),
              {{"dot", false}, {"additive", true}},
              "By products, which cost less, or by a layer of its own, as published.")
      .choice("order", nested(&Options::network, &Network::by_locality),
              {{"locality", true}, {"topological", false}},
              "Of the ops: those that exchange much near each other, or as they run.")
      .real("blocks", nested(&Options::network, &Network::blocks), 0, 1e9,
            "How often the device changes along the ops at first; 0: at random.")
      .integer("pretrain", nested(&Options::network, &Network::pretraining), 0, 1'000'000,
               "Iterations of deep graph infomax at most; 0: Mars without pre-training.");
}

OptionSchema<MarsOptions> with_learner(OptionSchema<MarsOptions> schema) {
  using Options = MarsOptions;
  using Ppo = learn::PpoSettings;
  return std::move(schema)
      .integer("samples", nested(&Options::ppo, &Ppo::batch), 2, 10'000, "Placements in an update.")
      .integer("epochs", nested(&Options::ppo, &Ppo::epochs), 1, 1000,
               "Gradient steps in an update.")
      .real("lr", nested(&Options::ppo, &Ppo::optimizer, &learn::OptimizerSettings::learning_rate),
            1e-9, 10, "Learning rate (Adam).")
      .real("entropy", nested(&Options::ppo, &Ppo::entropy_weight), 0, 10, "Weight of the entropy.")
      .real("clip", nested(&Options::ppo, &Ppo::clip), 0.001, 10, "How far a ratio counts.")
      .real("kl", nested(&Options::ppo, &Ppo::kl_share), 0, 10,
            "How far an update goes, as a share of the entropy; 0: the rate stays.")
      .choice("shortage", nested(&Options::ppo, &Ppo::cost, &learn::CostSettings::shortage),
              {{"penalty", learn::Shortage::kPenalty}, {"signal", learn::Shortage::kSignal}},
              "What does not fit costs its time and what is missing, or a fixed value.")
      .flag("restarts", &Options::restarts, "Begin anew when the policy has all but decided.");
}

class Mars final : public Placer {
 public:
  using Options = MarsOptions;
  static OptionSchema<Options> schema() {
    return with_general_options(with_learner(with_network(OptionSchema<Options>{})))
        .paper({{"rivals", "paper"},
                {"width", "512"},
                {"encoder_width", "256"},
                {"features", "types_and_shapes"},
                {"waves", "false"},
                {"attention", "additive"},
                {"order", "topological"},
                {"blocks", "0"},
                {"kl", "0"},
                {"shortage", "signal"},
                {"restarts", "false"}});
  }
  explicit Mars(const Options& options) : options_(options) {
    options_.network.width += options_.network.width % 2;
  }

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    if (!options_.policy.empty() && options_.design != Design::kMars) {
      fail_option(
          "mars: trained policies are of Mars's own design: expected design=mars with policy");
    }
    const double frozen = options_.design == Design::kEncoderPlacer
                              ? GdpOptions::kFrozenEntropy
                              : kFrozenTotalEntropy / context.problem().num_groups();
    const learn::SamplingSystem system{
        .policy = policy(),
        .learner = options_.ppo,
        .rounds = {.imitation = {.learning_rate = 3e-3},
                   .restart_entropy = options_.restarts ? frozen : 0}};
    return place_by_learning("mars", context, budget, rng, options_,
                             with_policy("mars", options_, system));
  }

 private:
  // A system's own options, as we have them or as published.
  template <class Settings>
  Settings rival(const OptionSchema<Settings>& schema) const {
    return schema.read({{"preset", options_.published_rivals ? "paper" : "emplace"}});
  }

  learn::PolicySettings policy() const {
    switch (options_.design) {
      case Design::kGrouperPlacer: {
        learn::GrouperPlacerSettings settings = rival(hdp_schema()).network;
        settings.noisy_rounds = 0;  // PPO explores in its own way
        settings.shards = 2;
        return settings;
      }
      case Design::kEncoderPlacer:
        return rival(gdp_schema()).network;
      case Design::kMars:
        break;
    }
    return options_.network;
  }

  Options options_;
};

}  // namespace

EMPLACE_PLACER(mars, Mars, .family = "learned",
               .summary =
                   "Pre-trained graph convolutions, then segments of ops to devices by an "
                   "LSTM with attention; PPO.",
               .reference = "Lan, Chen, Li, ICPP 2021", .randomized = true, .learns = true)

}  // namespace emplace
