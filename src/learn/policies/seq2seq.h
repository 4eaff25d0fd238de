// One sequence-to-sequence decision about all units (ColocRL, Spotlight).
#pragma once

#include <cstdint>
#include <string>

#include "base/rng.h"

#include "learn/features/feature_choice.h"
#include "learn/parts.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

struct SequencePolicySettings {
  Features features = Features::kAll;
  bool waves = true;  // besides, a unit's place in the sequence (learn/policies/unit_sequence.h)
  std::int64_t width = 64;
  bool bidirectional = false;
  // The decoder is told which unit it decides about, by the unit's features. Otherwise it must find
  // out by attention.
  bool decoder_sees_unit = false;
  double tanh_constant = 0;
  double temperature = 1;
  // The units' sequence is locality_order, or else topological_order (learn/units/orders.h).
  bool by_locality = true;
  // How often the device changes along the sequence at first, about; 0: as chance has it.
  double blocks = 16;
};

PolicyPtr sequence_policy(UnitGraph units, const SequencePolicySettings& settings,
                          const std::string& device, Rng& rng);

}  // namespace emplace::learn
