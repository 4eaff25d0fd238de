// Mars's policy (Lan, Chen, Li, ICPP 2021): a graph encoder, pre-trained without placements, and a
// sequence-to-sequence network that decides about one segment of the units after the other.
#pragma once

#include <cstdint>
#include <string>

#include "base/rng.h"

#include "learn/features/feature_choice.h"
#include "learn/parts.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

struct SegmentSequenceSettings {
  Features features = Features::kAll;
  bool waves = true;  // the encoder is told a unit's place in the sequence
  std::int64_t encoder_layers = 3;
  std::int64_t encoder_width = 256;
  std::int64_t width = 64;     // of the sequence-to-sequence network, even
  std::int64_t segment = 128;  // units
  // The units' sequence is locality_order, or else topological_order (learn/units/orders.h).
  bool by_locality = true;
  bool additive_attention = false;  // else products, which cost less
  // How often the device changes along the sequence at first, about; 0: as chance has it.
  double blocks = 16;
  std::int64_t pretraining = 1000;  // iterations at most; 0: the encoder begins as it is made
  double pretraining_share = 0.1;   // of a budget of time, at most
  // By scoring one shard, for gradients; above it segments are computed again
  // (learn/nn/recompute.h).
  double most_bytes_kept = 1e9;
};

// Segments are as in learn/policies/segment_seq2seq_net.h.
PolicyPtr segment_sequence_policy(UnitGraph units, const SegmentSequenceSettings& settings,
                                  const std::string& device, Rng& rng);

}  // namespace emplace::learn
