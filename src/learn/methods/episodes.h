// Placeto's way to learn (Addanki et al., NeurIPS 2019): episodes in which each unit in turn may
// move to another device, REINFORCE on the improvements, and a baseline for every step. Units may
// be groups that are learned together with how they are placed (learn/methods/learned_grouping.h):
// each episode then has units of its own, and its baseline is what its own workers do.
#pragma once

#include <cstdint>
#include <string>

#include "base/rng.h"

#include "learn/encoders/message_passing_settings.h"
#include "learn/methods/episode_rewards.h"
#include "learn/methods/method.h"
#include "learn/parts.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Where an episode begins.
enum class EpisodeStart {
  kRandom,
  kZero,   // every unit on the first device that it may use
  kBest,   // the best state of all episodes so far; at first random
  kGiven,  // the placement that was imitated, or the first that the search is given; else random
};

struct EpisodeSettings {
  MessagePassingSettings network = {};
  bool memory_feature = true;
  // How many groups the units are put into, anew for each episode; 0: they move as they are.
  std::int64_t learned_groups = 0;
  double grouper_learning_rate = 1e-4;
  std::int64_t workers = 8;
  std::int64_t passes = 1;  // how often it is each unit's turn in an episode
  bool random_order = false;
  // A step that leaves its unit where it was is evaluated like the others, as published.
  bool count_stays = false;
  EpisodeStart start = EpisodeStart::kRandom;
  EpisodeReward reward = EpisodeReward::kImprovement;
  RuntimeSettings runtime = {};
  std::int64_t baseline_episodes = 10;
  double entropy_weight = 1;
  std::int64_t entropy_episodes = 100;  // over which it falls to its last value
  double last_entropy_weight = 0.01;
  double learning_rate = 1e-3;
  double last_learning_rate = 1e-4;
  std::int64_t learning_episodes = 1000;  // over which it falls to its last value
  double clip_norm = 1.25;
  // After so many episodes, one more worker takes the likeliest devices; 0: never.
  std::int64_t greedy_every = 10;
  ImitationSettings imitation = {};
};

MethodPtr placeto_episodes(UnitGraph units, const EpisodeSettings& settings,
                           const std::string& device, Rng& rng);

}  // namespace emplace::learn
