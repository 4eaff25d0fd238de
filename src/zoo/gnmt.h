// The translation network of zoo/gnmt.cc, for other models that are built like it.
#pragma once

#include "zoo/net.h"

namespace emplace::zoo {

struct GnmtShape {
  std::int64_t batch = 256;
  std::int64_t sequence = 40;  // words of the source, and of the target
  std::int64_t layers = 4;     // of the encoder, and of the decoder; at least two
  std::int64_t hidden = 1024;
  std::int64_t vocabulary = 32'000;  // words of each language
};

// The forward pass down to the loss.
void build_gnmt(Net& net, const GnmtShape& shape);

}  // namespace emplace::zoo
