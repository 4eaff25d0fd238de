#include "placers/stream/bound.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "placer/bound.h"

#include "placers/stream/bound_covering.h"

namespace emplace {
namespace {

// Beyond these a table would be too coarse to be worth its time.
constexpr std::uint32_t kMaxItems = 20'000;
constexpr std::size_t kMaxDescription = 50'000'000;  // items and nets, times devices

bool small_enough(const StreamModel& model) {
  const std::size_t size = static_cast<std::size_t>(model.num_items()) + model.num_nets();
  return model.num_items() <= kMaxItems && size * model.num_devices() <= kMaxDescription;
}

}  // namespace

StreamBound bound_stream(const StreamModel& model, Nanoseconds upper, const Budget& budget,
                         const std::function<void(const StreamBound&)>& on_improvement) {
  const LowerBound simple = period_lower_bound(model.problem());
  StreamBound best{std::min(simple.step, upper), simple.reason};
  const auto report = [&] {
    if (on_improvement) on_improvement(best);
  };
  report();
  if (model.num_items() == 0 || !small_enough(model)) return best;
  const std::vector<DeviceClass> classes = find_device_classes(model);
  // A limit near the bound makes tables small; where it is too low, that is a bound too.
  const Nanoseconds most = std::min({upper, kNever / 2, model.problem().horizon() + 1});
  std::int64_t rounds = 0;
  const auto run = [&](StreamCovering& covering) {
    covering.run(budget, rounds, [&] {
      const std::uint32_t eased = covering.nets_eased();
      best = {covering.lower(), "covering by contents of devices"};
      if (eased > 0) best.reason += fmt::format(", {} tensors not fully charged", eased);
      report();
    });
  };
  while (best.period < most && !budget.spent(rounds)) {
    const Nanoseconds limit = std::min(most - 1, 2 * best.period);
    StreamCovering covering(model, classes, best.period, limit, false);
    run(covering);
    if (best.period > limit) continue;
    if (budget.spent(rounds)) break;
    StreamCovering with_memory(model, classes, best.period, limit, true);
    if (!with_memory.counts_memory()) break;
    with_memory.begin_with(covering);
    run(with_memory);
    if (best.period <= limit) break;
  }
  return best;
}

}  // namespace emplace
