// GDP's policy (Zhou et al. 2019): GraphSAGE, then attention in segments, then a softmax over
// devices for every unit. One pass gives all distributions; given those, units are drawn
// independently.
//
// Its first placements are no coin tosses: units that exchange much mostly agree, since the network
// sees where they are in the graph (learn/encoders/graph_coordinates.h), and its first logits are
// spread. Thousands of independent tosses would cut every edge of the graph in every sample, and
// from there no single decision makes a difference that can be seen.
#pragma once

#include <cstdint>
#include <string>

#include "base/rng.h"

#include "learn/parts.h"
#include "learn/unit_graph.h"

namespace emplace::learn {

struct SegmentAttentionSettings {
  std::int64_t coordinates = 16;  // that say where in the graph a unit is
  std::int64_t sage_width = 32;
  std::int64_t sage_layers = 3;
  std::int64_t width = 32;
  std::int64_t heads = 4;  // divides the width
  std::int64_t layers = 2;
  std::int64_t segment = 64;
  bool superposition = true;
  double spread = 1.5;  // standard deviation of the first logits
};

PolicyPtr segment_attention_policy(UnitGraph units, const SegmentAttentionSettings& settings,
                                   const std::string& device, Rng& rng);

}  // namespace emplace::learn
