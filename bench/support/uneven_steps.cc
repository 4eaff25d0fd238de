#include "support/uneven_steps.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "base/rng.h"

#include "graph/graph_builder.h"

namespace emplace::bench {
namespace {

constexpr double kMeanMicroseconds = 100;
constexpr double kSpread = 300;       // the longest op's time over the shortest one's
constexpr double kDearest = 10;       // times a mean op's, to send; and the cheapest's inverse
constexpr double kBytesPerUs = 12e3;  // of cluster_for's links
constexpr double kSlowdown = 8;       // of its devices
constexpr double kSkip = 0.05;        // inputs from anywhere before

double log_uniform(Rng& rng, double low, double high) {
  return low * std::pow(high / low, rng.uniform());
}

}  // namespace

std::shared_ptr<const Graph> uneven_step(std::uint64_t seed) {
  Rng rng = Rng(20'261'117).split(seed);
  GraphBuilder builder(fmt::format("uneven-{}", seed));
  const std::uint64_t ops = 100 + rng.below(201);
  const std::uint64_t window = 3 + rng.below(38);  // narrow: a few chains; wide: much at a time
  std::vector<TensorId> made;
  for (std::uint64_t i = 0; i < ops; ++i) {
    OpSpec op;
    op.name = fmt::format("op{}", i);
    op.type = "compute";
    for (std::uint64_t inputs = i == 0 ? 0 : 1 + rng.below(3); inputs > 0; --inputs) {
      const std::uint64_t reach = rng.chance(kSkip) ? i : std::min(i, window);
      const TensorId input = made[i - 1 - rng.below(reach)];
      if (std::find(op.inputs.begin(), op.inputs.end(), input) == op.inputs.end()) {
        op.inputs.push_back(input);
      }
    }
    const double time = log_uniform(rng, kMeanMicroseconds / std::sqrt(kSpread),
                                    kMeanMicroseconds * std::sqrt(kSpread));
    op.time_us = {{"p100", {static_cast<std::int64_t>(time * 1000), -3}}};
    const double send = kSlowdown * kMeanMicroseconds * log_uniform(rng, 1 / kDearest, kDearest);
    const auto bytes = static_cast<Bytes>(send * kBytesPerUs);
    made.push_back(builder.add(std::move(op), {{.bytes = bytes}}).front());
  }
  return std::make_shared<const Graph>(std::move(builder).build());
}

}  // namespace emplace::bench
