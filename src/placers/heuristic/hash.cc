// Hashing, the baseline of Mayer, Mayer and Laich, "The TensorFlow partitioning and scheduling
// problem: it's the critical path!" (2017): a random legal device for every group of ops. Legal is
// a device that the group may use and that has room for it; where there is none, the allowed device
// with the most room is taken.
#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"

#include "placers/common/choices.h"

namespace emplace {
namespace {

class Hash final : public Placer {
 public:
  struct Options {};
  static OptionSchema<Options> schema() { return {}; }
  explicit Hash(const Options&) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override {
    const Problem& problem = context.problem();
    const DeviceChoices choices(problem, mutually_linked_devices(problem));
    return fit_memory(problem, context.evaluator(), budget, [&](MemoryLedger& ledger) {
      Rng draws = rng;  // every try draws the same, so that only the room differs
      std::vector<DeviceId> device_of_group(problem.num_groups());
      for (GroupId group = 0; group < problem.num_groups(); ++group) {
        const std::vector<DeviceId> legal = devices_with_room(ledger, group, choices.of(group));
        device_of_group[group] = draws.pick(std::span<const DeviceId>(legal));
        ledger.add(group, device_of_group[group]);
      }
      return PlaceResult{.placement = expand_groups(problem, device_of_group)};
    });
  }
};

}  // namespace

EMPLACE_PLACER(
    hash, Hash, .family = "heuristic",
    .summary =
        "A random device with room for each group of ops; as `random` unless room runs short.",
    .reference = "Mayer, Mayer, Laich 2017", .randomized = true)

}  // namespace emplace
