// A link's latency and bandwidth from what transfers took.
#pragma once

#include <vector>

#include "base/units.h"

namespace emplace {

struct LinkSample {
  Bytes bytes = 0;
  Nanoseconds time = 0;
  bool within_step = false;  // not sent for its own sake
};

struct LinkFit {
  Nanoseconds latency = 0;
  std::int64_t bandwidth = 1;  // bytes per second
  double error = 0;            // root of the mean square of relative errors, weighted so
};

// The line from which samples of more than one size are least off, for their times. What was sent
// within steps, often hundreds of small tensors that caches hold, counts together as much as the
// rest. Latency is not negative, and the bandwidth is positive.
LinkFit fit_link(const std::vector<LinkSample>& samples);

}  // namespace emplace
