#include "run/link_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace emplace {
namespace {

// time = latency + bytes * per_byte.
struct Line {
  double latency = 0;
  double per_byte = 0;

  double at(const LinkSample& sample) const {
    return std::max(1.0, latency + per_byte * static_cast<double>(sample.bytes));
  }
};

double time_of(const LinkSample& sample) {
  return std::max(1.0, static_cast<double>(sample.time));
}

// What each sample has of the whole.
std::vector<double> shares_of(const std::vector<LinkSample>& samples) {
  const auto within = std::count_if(samples.begin(), samples.end(),
                                    [](const LinkSample& sample) { return sample.within_step; });
  const auto apart = static_cast<std::ptrdiff_t>(samples.size()) - within;
  const double sets = within > 0 && apart > 0 ? 2 : 1;
  std::vector<double> shares;
  for (const LinkSample& sample : samples) {
    shares.push_back(1 / (sets * static_cast<double>(sample.within_step ? within : apart)));
  }
  return shares;
}

Line least_squares(const std::vector<LinkSample>& samples, const std::vector<double>& weights) {
  double w = 0;
  double wx = 0;
  double wy = 0;
  double wxx = 0;
  double wxy = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double y = time_of(samples[i]);
    const double x = static_cast<double>(samples[i].bytes);
    w += weights[i];
    wx += weights[i] * x;
    wy += weights[i] * y;
    wxx += weights[i] * x * x;
    wxy += weights[i] * x * y;
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

// The least sum of r - log r over the ratios r of the line by the samples, which is convex. Squares
// weighted by what was measured alone would let a few quick samples decide: the line can be many
// times above them, but not so far below others. Where squares weighted by sample and line together
// stand still is that sum's least; some rounds are enough.
Line least_off(const std::vector<LinkSample>& samples, const std::vector<double>& shares) {
  constexpr int kEnough = 30;
  std::vector<double> weights(samples.size());
  Line line;
  for (int round = 0; round < kEnough; ++round) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double y = time_of(samples[i]);
      weights[i] = shares[i] / (y * (round == 0 ? y : line.at(samples[i])));
    }
    line = least_squares(samples, weights);
  }
  return line;
}

}  // namespace

LinkFit fit_link(const std::vector<LinkSample>& samples) {
  EMPLACE_CHECK(!samples.empty());
  const std::vector<double> shares = shares_of(samples);
  const Line line = least_off(samples, shares);
  constexpr double kFastest = 1e15;  // bytes per second
  LinkFit fit;
  fit.latency = std::llround(line.latency);
  fit.bandwidth = std::llround(std::min(kFastest, 1e9 / std::max(line.per_byte, 1e-6)));
  double squares = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double error = line.at(samples[i]) / time_of(samples[i]) - 1;
    squares += shares[i] * error * error;
  }
  fit.error = std::sqrt(squares);
  return fit;
}

}  // namespace emplace
