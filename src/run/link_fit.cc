#include "run/link_fit.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace emplace {
namespace {

// time = latency + bytes * per_byte, each sample weighted by 1 / time^2.
struct Line {
  double latency = 0;
  double per_byte = 0;
};

Line least_squares(const std::vector<LinkSample>& samples) {
  double w = 0;
  double wx = 0;
  double wy = 0;
  double wxx = 0;
  double wxy = 0;
  for (const LinkSample& sample : samples) {
    const double y = std::max(1.0, static_cast<double>(sample.time));
    const double x = static_cast<double>(sample.bytes);
    const double weight = 1 / (y * y);
    w += weight;
    wx += weight * x;
    wy += weight * y;
    wxx += weight * x * x;
    wxy += weight * x * y;
  }
  const double spread = w * wxx - wx * wx;
  if (spread <= 0) return {wy / w, 0};
  Line line{.per_byte = (w * wxy - wx * wy) / spread};
  line.latency = (wy - line.per_byte * wx) / w;
  // A line that begins below zero is the best through zero instead; one that falls is flat.
  if (line.latency < 0) line = {0, wxy / wxx};
  if (line.per_byte < 0) line = {wy / w, 0};
  return line;
}

}  // namespace

LinkFit fit_link(const std::vector<LinkSample>& samples) {
  EMPLACE_CHECK(!samples.empty());
  const Line line = least_squares(samples);
  constexpr double kFastest = 1e15;  // bytes per second
  LinkFit fit;
  fit.latency = std::llround(line.latency);
  fit.bandwidth = std::llround(std::min(kFastest, 1e9 / std::max(line.per_byte, 1e-6)));
  double squares = 0;
  for (const LinkSample& sample : samples) {
    const double expected = line.latency + line.per_byte * static_cast<double>(sample.bytes);
    const double error = expected / std::max(1.0, static_cast<double>(sample.time)) - 1;
    squares += error * error;
  }
  fit.error = std::sqrt(squares / static_cast<double>(samples.size()));
  return fit;
}

}  // namespace emplace
