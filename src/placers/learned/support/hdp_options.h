// What HDP lets people choose, its defaults, and what its paper has. Mars compares with its
// network.
#pragma once

#include "placers/learned/support/learned.h"

namespace emplace {

struct HdpOptions : LearnedOptions {
  learn::GrouperPlacerSettings network = {.width = 64, .share_grouping = 20, .noisy_rounds = 0};
  std::int64_t groupings = 1;
  bool with_ppo = false;
  std::int64_t controllers = 1;
  std::int64_t workers = 0;
  std::int64_t mask_after = 1000;
  learn::PpoSettings learner = {
      .optimizer = {.learning_rate = 3e-3,
                    .clip_norm = 1,
                    .part = {.prefix = "grouper.", .learning_rate = 3e-3, .clip_norm = 1}},
      .cost = {.shortage = learn::Shortage::kPenalty}};
};

inline OptionSchema<HdpOptions> hdp_schema() {
  using Options = HdpOptions;
  using Network = learn::GrouperPlacerSettings;
  using Learner = learn::PpoSettings;
  using Steps = learn::OptimizerSettings;
  using Part = learn::OptimizerPart;
  using learn::Features;
  using learn::FirstGroups;
  return with_learned_options(
             OptionSchema<Options>{}
                 .integer("groups", nested(&Options::network, &Network::groups), 0, 4096,
                          "That the grouper may use; 0: 20 a device, 256 at most.")
                 .integer("width", nested(&Options::network, &Network::width), 2, 4096,
                          "Of the placer's states; even.")
                 .integer("hidden", nested(&Options::network, &Network::hidden), 2, 4096,
                          "Of the grouper's hidden layer.")
                 .choice("features", nested(&Options::network, &Network::features),
                         {{"types_and_shapes", Features::kTypesAndShapes}, {"all", Features::kAll}},
                         "What the grouper sees of an op beside its neighbours: as published, or "
                         "times, "
                         "bytes and its place in the graph, too.")
                 .choice("first_groups", nested(&Options::network, &Network::first_groups),
                         {{"slices", FirstGroups::kSlices},
                          {"weights", FirstGroups::kWeights},
                          {"drawn", FirstGroups::kDrawn}},
                         "Pieces of what exchanges much, or as random weights have it (the "
                         "paper); or "
                         "drawn once, and never learned.")
                 .flag("sees_group", nested(&Options::network, &Network::decoder_sees_group),
                       "The decoder gets the features of the group that it decides about.")
                 .real("blocks", nested(&Options::network, &Network::blocks), 0, 1e9,
                       "How often the device changes along the groups at first; 0: as chance has "
                       "it.")
                 .integer("groupings", &Options::groupings, 1, 1024, "m: in an update.")
                 .integer("samples", nested(&Options::network, &Network::share_grouping), 1, 1024,
                          "k: placements of each grouping.")
                 .integer("noisy_rounds", nested(&Options::network, &Network::noisy_rounds), 0,
                          1'000'000'000, "Updates with noise on the logits.")
                 .real("tanh_constant", nested(&Options::network, &Network::tanh_constant), 0.01,
                       1000,
                       "C: logits are C tanh(l / T). Of a grouper that begins as slices or stages, "
                       "C is ln(10,000 G), so that it can undo them.")
                 .real("temperature", nested(&Options::network, &Network::temperature), 0.01, 1000,
                       "T: logits are C tanh(l / T).")
                 .choice("learner", &Options::with_ppo, {{"reinforce", false}, {"ppo", true}},
                         "The paper's, or PPO with clipping.")
                 .integer("controllers", &Options::controllers, 1, kMostControllers,
                          kControllersHelp)
                 .integer("workers", &Options::workers, 0, kMostWorkers, kWorkersHelp)
                 .integer("epochs", nested(&Options::learner, &Learner::epochs), 1, 1000,
                          "PPO's gradient steps in an update.")
                 .real("lr", nested(&Options::learner, &Learner::optimizer, &Steps::learning_rate),
                       1e-6, 10, "Adam's learning rate.")
                 .real("lr_decay",
                       nested(&Options::learner, &Learner::optimizer, &Steps::stair_factor), 1e-6,
                       1, "What rates are multiplied by now and then; 1: they stay.")
                 .integer("lr_decay_every",
                          nested(&Options::learner, &Learner::optimizer, &Steps::stair_steps), 1,
                          1'000'000'000, "So many steps.")
                 .integer("lr_decay_after",
                          nested(&Options::learner, &Learner::optimizer, &Steps::stairs_after), 0,
                          1'000'000'000, "The first so many.")
                 .real("clip", nested(&Options::learner, &Learner::optimizer, &Steps::clip_norm), 0,
                       1e9, "Largest norm of a gradient; 0: any.")
                 .real("grouper_lr",
                       nested(&Options::learner, &Learner::optimizer, &Steps::part,
                              &Part::learning_rate),
                       0, 10, "The grouper's learning rate; 0: lr.")
                 .real(
                     "grouper_clip",
                     nested(&Options::learner, &Learner::optimizer, &Steps::part, &Part::clip_norm),
                     0, 1e9,
                     "Largest norm of the grouper's gradient; 0: one norm for both networks.")
                 .choice(
                     "shortage",
                     nested(&Options::learner, &Learner::cost, &learn::CostSettings::shortage),
                     {{"signal", learn::Shortage::kSignal}, {"penalty", learn::Shortage::kPenalty}},
                     "What does not fit costs as 100 s (the paper), or by how much is missing.")
                 .integer("mask_after", &Options::mask_after, 0, 1'000'000'000,
                          "Updates of REINFORCE after which what does not fit is left out, with "
                          "shortage=signal."))
      .paper({{"width", "512"},
              {"features", "types_and_shapes"},
              {"first_groups", "weights"},
              {"sees_group", "false"},
              {"blocks", "0"},
              {"samples", "4"},
              {"noisy_rounds", "750"},
              {"lr", "0.1"},
              {"lr_decay", "0.95"},
              {"grouper_lr", "0"},
              {"grouper_clip", "0"},
              {"shortage", "signal"},
              {"mask_after", "500"}});
}

}  // namespace emplace
