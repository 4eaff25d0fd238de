// GDP's policy (Zhou et al. 2019): GraphSAGE, then attention in segments, then a softmax over
// devices for every unit. One pass gives all distributions.
//
// Thousands of independent draws cut every edge of the graph in every sample, and from there no
// decision makes a difference that can be seen. Two things help, both beyond the paper:
// * The network sees where in the graph a unit is (learn/encoders/graph_coordinates.h), and its
//   first logits are spread, so that units that exchange much mostly agree from the beginning.
// * Neighbourhoods draw a device first, and their units mostly follow
//   (learn/policies/neighbourhoods.h), so a sample tells of neighbourhoods as a whole.
#pragma once

#include <cstdint>
#include <string>

#include "base/rng.h"

#include "learn/features/feature_choice.h"
#include "learn/parts.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

struct SegmentAttentionSettings {
  Features features = Features::kAll;
  std::int64_t coordinates = 16;  // that say where in the graph a unit is
  // What a unit is counts for less at first than where it is: neighbours are seldom of one type.
  double feature_scale = 0.1;
  // What all units have in common would only move all of them together.
  bool centred = true;
  std::int64_t sage_width = 32;
  std::int64_t sage_layers = 3;
  std::int64_t width = 32;
  std::int64_t heads = 2;  // divides the width
  std::int64_t layers = 2;
  std::int64_t segment = 64;
  bool superposition = true;
  // Standard deviation of the first logits; 0: as weights are drawn, in the blocks too.
  double spread = 3;
  // So many draw before their units do (as Placeto would group them); 0: every unit by itself.
  std::int64_t neighbourhoods = 0;
  double pull = 6;  // of a neighbourhood's device on the logits of its units
};

PolicyPtr segment_attention_policy(UnitGraph units, const SegmentAttentionSettings& settings,
                                   const std::string& device, Rng& rng);

}  // namespace emplace::learn
