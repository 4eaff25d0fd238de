#include "learn/general/finish.h"

#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "learn/general/overflow_descent.h"

namespace emplace::learn {
namespace {

// To make a placement fit.
constexpr int kTries = 16;
// Evaluations to make the best fit where none does, from each way to round it.
constexpr std::int64_t kInsisting = 1000;

}  // namespace

void Finish::operator()(const Placement& placement, std::span<const DeviceId> used,
                        Environment& environment) const {
  repair_(placement, used, kTries, environment);
  for (Placement& cut : rounding_(placement)) {
    repair_(std::move(cut), used, kTries, environment);
  }
}

bool Finish::insist(Environment& environment, const Rng& rng) const {
  const std::optional<Solution> best = environment.context().incumbent().best();
  if (!best || best->value.fits() || environment.context().evaluator().measures()) return false;
  std::vector<DeviceId> devices(environment.problem().num_devices());
  std::iota(devices.begin(), devices.end(), DeviceId{0});
  const OverflowDescent descent(environment.problem());
  std::vector<Placement> starts = rounding_(best->placement);
  starts.push_back(best->placement);
  for (Placement& start : starts) {
    descent(std::move(start), devices, kInsisting, environment, rng.split(1));
    if (environment.context().incumbent().value()->fits()) break;
  }
  return true;
}

}  // namespace emplace::learn
