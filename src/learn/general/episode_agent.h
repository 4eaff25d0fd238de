// An agent that moves one unit after the other and learns from how that changes the time of a step
// (Placeto).
#pragma once

#include <cstdint>
#include <string>

#include "learn/general/agent.h"
#include "learn/general/network.h"
#include "learn/methods/episode_rewards.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

struct EpisodeAgentSettings {
  std::int64_t workers = 4;  // episodes of a round; half of them begin anywhere
  RuntimeSettings runtime = {};
  // Of one set of devices in use and one kind of start.
  std::int64_t baseline_episodes = 4;
  double entropy_weight = 0.001;
};

// The first of the episodes that it proposes begins at slices along the modules and takes the
// likeliest devices; the others begin there too and draw. An episode evaluates every state that it
// comes to: at most one more than there are units.
GeneralAgentPtr episode_agent(UnitGraph units, const GeneralNetwork& network,
                              const EpisodeAgentSettings& settings, const std::string& device,
                              Rng& rng);

}  // namespace emplace::learn
