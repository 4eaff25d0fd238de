// GDP's policy for any graph and any devices: GraphSAGE and attention in segments with
// superposition, as in learn/policies/segment_attention.h, over features that mean the same
// everywhere; a unit's vector is then scored on every device (learn/nn/device_scores.h).
#pragma once

#include <string>

#include "learn/general/general_policy.h"
#include "learn/general/network.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Decides in so many neighbourhoods (learn/policies/neighbourhoods.h).
GeneralPolicyPtr general_attention_policy(UnitGraph units, const GeneralNetwork& network,
                                          const std::string& device, Rng& rng,
                                          std::int64_t neighbourhoods = 200);

}  // namespace emplace::learn
