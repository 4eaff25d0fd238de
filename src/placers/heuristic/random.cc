// A uniformly random device for every group of ops, memory or not: what every search must beat.
#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"

#include "placers/common/choices.h"

namespace emplace {
namespace {

class Random final : public Placer {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit Random(const Options&) {}

  PlaceResult place(PlaceContext& context, const Budget&, Rng rng) override {
    const Problem& problem = context.problem();
    const DeviceChoices choices(problem, mutually_linked_devices(problem));
    std::vector<DeviceId> device_of_group(problem.num_groups());
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      device_of_group[group] = rng.pick(choices.of(group));
    }
    PlaceResult result{.placement = expand_groups(problem, device_of_group)};
    note_shortage(problem, context.evaluator(), result);
    return result;
  }
};

}  // namespace

EMPLACE_PLACER(random, Random, .family = "heuristic",
               .summary = "A random allowed device for every group of ops.",
               .reference = "folklore baseline", .randomized = true)

}  // namespace emplace
