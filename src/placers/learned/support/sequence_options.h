// What ColocRL and Spotlight, which have one policy, let people choose about it.
#pragma once

#include "placers/learned/support/learned.h"

namespace emplace {

template <class LearnerSettings>
struct SequenceOptions : LearnedOptions {
  learn::ColocationRules units = {.most_units = 200};
  learn::SequencePolicySettings network = {.decoder_sees_unit = true};
  LearnerSettings learner = {.batch = 20, .optimizer = {.learning_rate = 3e-3, .clip_norm = 1}};
  bool restarts = true;
};

// Adds them, and the options that every learned placer has.
template <class Options>
OptionSchema<Options> with_sequence_options(OptionSchema<Options> schema) {
  using Units = learn::ColocationRules;
  using Network = learn::SequencePolicySettings;
  using Steps = learn::OptimizerSettings;
  using Cost = learn::CostSettings;
  using Learner = decltype(Options::learner);
  return with_learned_options(
      std::move(schema)
          .integer("groups", nested(&Options::units, &Units::most_units), 1, 2000,
                   "Groups of ops, at most.")
          .real(
              "largest", nested(&Options::units, &Units::largest_share), 0, 1,
              "Share of all time that a group may have by the rules of colocation, sole consumers "
              "and layers; 0: 1.5 times the mean group's.")
          .flag("acyclic", nested(&Options::units, &Units::acyclic),
                "Groups form a directed acyclic graph, as Placeto's do.")
          .choice(
              "features", nested(&Options::network, &Network::features),
              {{"all", learn::Features::kAll},
               {"types_and_shapes", learn::Features::kTypesAndShapes}},
              "Of groups, beside who feeds whom: as published, or with times, bytes and places.")
          .flag("waves", nested(&Options::network, &Network::waves),
                "The network is told a group's place in the sequence.")
          .integer("width", nested(&Options::network, &Network::width), 1, 4096,
                   "Of the LSTM's state.")
          .flag("sees_group", nested(&Options::network, &Network::decoder_sees_unit),
                "The decoder gets the features of the group that it decides about.")
          .choice("order", nested(&Options::network, &Network::by_locality),
                  {{"locality", true}, {"topological", false}},
                  "Of the groups: those that exchange much together, or as they run.")
          .real("blocks", nested(&Options::network, &Network::blocks), 0, 1e9,
                "How often the device changes along the sequence at first; 0: as chance has it.")
          .integer("samples", nested(&Options::learner, &Learner::batch), 1, 10'000,
                   "K: placements per update.")
          .real("lr", nested(&Options::learner, &Learner::optimizer, &Steps::learning_rate), 1e-6,
                1, "Adam's learning rate.")
          .real("clip", nested(&Options::learner, &Learner::optimizer, &Steps::clip_norm), 0, 1e6,
                "Largest norm of a gradient; 0: any.")
          .choice("shortage", nested(&Options::learner, &Learner::cost, &Cost::shortage),
                  {{"signal", learn::Shortage::kSignal}, {"penalty", learn::Shortage::kPenalty}},
                  "A placement that does not fit costs as one of 100 s, or by what is missing.")
          .real("entropy", nested(&Options::learner, &Learner::entropy_weight), 0, 10,
                "Weight of an entropy bonus.")
          .flag("restarts", &Options::restarts, "Begin anew when the policy has all but decided."));
}

// The policy over ColocRL's groups with this learner.
template <class Options>
learn::SamplingSystem sequence_system(const Options& options,
                                      const learn::LearnerSettings& learner) {
  // Below it the network has all but decided: what is left of the budget is better spent on a new
  // one.
  constexpr double kFrozenEntropy = 0.01;
  return learn::SamplingSystem{
      .units = options.units,
      .policy = options.network,
      .learner = learner,
      .rounds = {.restart_entropy = options.restarts ? kFrozenEntropy : 0}};
}

}  // namespace emplace
