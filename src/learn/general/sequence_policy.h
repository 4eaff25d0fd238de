// Mars's policy for any graph and any devices: graph convolutions, then segments of the units to
// devices by an LSTM with attention, as in learn/policies/segment_seq2seq.h, over features that
// mean the same everywhere. The decoder sees the previous device by its columns, and scores its
// unit on every device (learn/nn/device_scores.h); to stay on the previous device has a score of
// its own, by the graph's columns.
#pragma once

#include <string>

#include "learn/general/general_policy.h"
#include "learn/general/network.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Of the network, the width counts, which is rounded up to an even one. Where scoring would keep
// more than `most_bytes_kept` for gradients, segments are computed again (learn/nn/recompute.h).
GeneralPolicyPtr general_sequence_policy(UnitGraph units, const GeneralNetwork& network,
                                         const std::string& device, Rng& rng,
                                         double most_bytes_kept = 1e9);

}  // namespace emplace::learn
