// HDP's policy: a feed-forward grouper puts every unit into a group, and a sequence-to-sequence
// placer puts every group onto a device (Mirhoseini et al., ICLR 2018).
//
// The decisions of a sample are a group for every unit, then a device for every group. Groups
// without units are left out of the placer's sequence: their device is the first, for certain, so
// that they add nothing to a gradient.
#pragma once

#include <cstdint>
#include <string>

#include "base/rng.h"

#include "learn/features/feature_choice.h"
#include "learn/parts.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Where groups begin.
enum class FirstGroups {
  kSlices,   // pieces of equal time along the locality order (learn/units/orders.h), which units
             // leave and join as the grouper learns
  kStages,   // the same along the order in which units run
  kWeights,  // what small random weights make of the features: nearly any group is as likely
  kDrawn,    // every unit in a group drawn once, and no grouper: what learned groups must beat
};

struct GrouperPlacerSettings {
  std::int64_t groups = 0;          // 0: min(256, 20 x devices); never more than units
  std::int64_t hidden = 64;         // of the grouper
  std::int64_t type_width = 20;     // of the embedding of op types
  std::int64_t width = 512;         // of the placer, both directions together; even
  std::int64_t share_grouping = 4;  // k: samples that share a sampled grouping
  FirstGroups first_groups = FirstGroups::kSlices;
  Features features = Features::kAll;  // that the grouper sees
  bool decoder_sees_group = true;      // else it knows of a group what it attends to alone
  double blocks = 16;  // how often the device changes along the groups at first; 0: at random
  // The placer's logits are C tanh(l / T), and so are the grouper's under kWeights.
  double tanh_constant = 5;
  double temperature = 10;
  // Normal noise of so much of the bounded logits' root mean square is added in the first rounds.
  double noise = 0.5;
  std::int64_t noisy_rounds = 750;
  std::int64_t shards = 1;  // worth more where a batch has several groupings
};

PolicyPtr grouper_placer_policy(UnitGraph units, const GrouperPlacerSettings& settings,
                                const std::string& device, Rng& rng);

}  // namespace emplace::learn
