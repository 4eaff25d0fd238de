// What GDP lets people choose, its defaults, and what its paper has. Mars compares with its
// network.
//
// Published are the parts: GraphSAGE with max pooling, attention in segments without positions,
// superposition, no grouping, independent draws, PPO, the root of the step time as cost and -10 as
// the reward of what does not fit. Sizes, rates and the baseline are not: those of the preset are
// our choice, as is a fixed rate.
#pragma once

#include "placers/learned/support/learned.h"

namespace emplace {

struct GdpOptions : GeneralOptions {
  // Below it the policy has all but decided: what is left of the budget is better spent on a new
  // one.
  static constexpr double kFrozenEntropy = 0.003;
  // The paper's reward of an invalid placement is -10: the root of 100 s.
  static constexpr double kFailingSeconds = 100;
  // Costs fall fast; a baseline that lags makes every sample look good.
  static constexpr double kBaselineDecay = 0.5;

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

inline OptionSchema<GdpOptions> with_gdp_network(OptionSchema<GdpOptions> schema) {
  using Options = GdpOptions;
  using Network = learn::SegmentAttentionSettings;
  return std::move(schema)
      .integer("width", nested(&Options::network, &Network::width), 1, 4096,
               "Of attention; a multiple of heads.")
      .integer("layers", nested(&Options::network, &Network::layers), 0, 64, "Blocks of attention.")
      .integer("heads", nested(&Options::network, &Network::heads), 1, 64, "Of each block.")
      .integer("segment", nested(&Options::network, &Network::segment), 1, 100'000,
               "Ops that see each other.")
      .integer("sage_width", nested(&Options::network, &Network::sage_width), 1, 4096,
               "Of GraphSAGE.")
      .integer("sage_layers", nested(&Options::network, &Network::sage_layers), 1, 64,
               "Of GraphSAGE.")
      .choice(
          "features", nested(&Options::network, &Network::features),
          {{"all", learn::Features::kAll}, {"types_and_shapes", learn::Features::kTypesAndShapes}},
          "What the network is told of an op: also what it costs and where it is, or as "
          "published.")
      .integer("coordinates", nested(&Options::network, &Network::coordinates), 0, 256,
               "Numbers that say where in the graph an op is.")
      .real("feature_scale", nested(&Options::network, &Network::feature_scale), 0, 1000,
            "What the features beside them are multiplied by.")
      .flag("centred", nested(&Options::network, &Network::centred),
            "Features and coordinates have mean 0 over the graph.")
      .flag("superposition", nested(&Options::network, &Network::superposition),
            "Condition every dense layer on the whole graph.")
      .real("spread", nested(&Options::network, &Network::spread), 0, 100,
            "Deviation of the first logits; 0: as weights are drawn.")
      .integer("neighbourhoods", nested(&Options::network, &Network::neighbourhoods), 0, 1'000'000,
               "Of ops, which draw a device that theirs mostly follow; 0: each op by itself.")
      .real("pull", nested(&Options::network, &Network::pull), 0, 100,
            "How much an op's logits must speak against its neighbourhood's device.");
}

inline OptionSchema<GdpOptions> with_gdp_learner(OptionSchema<GdpOptions> schema) {
  using Options = GdpOptions;
  using Ppo = learn::PpoSettings;
  return std::move(schema)
      .integer("samples", nested(&Options::ppo, &Ppo::batch), 1, 10'000, "Placements per update.")
      .integer("epochs", nested(&Options::ppo, &Ppo::epochs), 1, 1000, "Gradient steps per update.")
      .real("lr", nested(&Options::ppo, &Ppo::optimizer, &learn::OptimizerSettings::learning_rate),
            1e-8, 10, "Learning rate at first; then it follows kl.")
      .real("kl", nested(&Options::ppo, &Ppo::kl_share), 0, 10,
            "How far an update goes, as a share of the entropy; 0: the rate stays.")
      .real("clip", nested(&Options::ppo, &Ppo::clip), 1e-6, 10, "Of PPO's ratios.")
      .real("entropy", nested(&Options::ppo, &Ppo::entropy_weight), 0, 10, "Weight of the entropy.")
      .real("baseline", nested(&Options::ppo, &Ppo::baseline_decay), 0, 0.9999,
            "What an update leaves of the moving average that costs are compared with.")
      .choice("shortage", nested(&Options::ppo, &Ppo::cost, &learn::CostSettings::shortage),
              {{"penalty", learn::Shortage::kPenalty}, {"signal", learn::Shortage::kSignal}},
              "Memory overflow costs by its size, or as a fixed bad step as published.")
      .flag("restarts", &Options::restarts, "Begin anew when the policy has all but decided.");
}

inline OptionSchema<GdpOptions> gdp_schema() {
  return with_general_options(with_gdp_learner(with_gdp_network(OptionSchema<GdpOptions>{})))
      .paper({{"width", "128"},
              {"heads", "4"},
              {"segment", "128"},
              {"sage_width", "64"},
              {"features", "types_and_shapes"},
              {"coordinates", "0"},
              {"feature_scale", "1"},
              {"spread", "0"},
              {"neighbourhoods", "0"},
              {"samples", "20"},
              {"epochs", "4"},
              {"lr", "0.0003"},
              {"kl", "0"},
              {"entropy", "0.01"},
              {"baseline", "0.9"},
              {"shortage", "signal"},
              {"restarts", "false"}});
}

}  // namespace emplace
