// Placeto's network, as a placer says how it should be, without libtorch.
#pragma once

#include <cstdint>

namespace emplace::learn {

// What a node hears from its neighbours.
enum class Aggregate {
  kSum,        // as published: grows with every round where nodes have many neighbours
  kScaledSum,  // the sum, in parts of the mean number of neighbours
  kMean,       // of its neighbours; of pools too
};

struct MessagePassingSettings {
  std::int64_t rounds = 8;  // in each direction; 0: every node knows itself alone
  bool pools = true;        // else the choice is made from the node itself
  Aggregate aggregate = Aggregate::kScaledSum;
  double logit_bound = 0;  // C of C tanh(logits); 0: none
};

}  // namespace emplace::learn
