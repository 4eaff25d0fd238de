// Round-robin: the i-th group of ops on device (i / stride) mod D, or the next device in turn that
// it may use. Looks at neither time nor memory.
#include <algorithm>

#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"

#include "placers/common/choices.h"

namespace emplace {
namespace {

class RoundRobin final : public Placer {
 public:
  struct Options {
    std::int64_t stride = 1;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.integer("stride", &Options::stride, 1, 1'000'000'000,
                                           "Consecutive groups of ops per device.");
  }
  explicit RoundRobin(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget&, Rng) override {
    const Problem& problem = context.problem();
    const std::vector<DeviceId> devices = mutually_linked_devices(problem);
    const DeviceChoices choices(problem, devices);
    std::vector<DeviceId> device_of_group(problem.num_groups());
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      const auto turn = static_cast<std::size_t>(group / options_.stride) % devices.size();
      const std::span<const DeviceId> choice = choices.of(group);
      const auto next = std::lower_bound(choice.begin(), choice.end(), devices[turn]);
      device_of_group[group] = next == choice.end() ? choice.front() : *next;
    }
    PlaceResult result{.placement = expand_groups(problem, device_of_group)};
    note_shortage(problem, context.evaluator(), result);
    return result;
  }

 private:
  Options options_;
};

}  // namespace

EMPLACE_PLACER(round_robin, RoundRobin, .family = "heuristic",
               .summary = "The i-th group of ops on device (i / stride) mod D.",
               .reference = "folklore baseline")

}  // namespace emplace
