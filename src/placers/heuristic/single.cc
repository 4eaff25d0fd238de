// Everything on one device: the one that would be done soonest, or, where that has too little
// memory, the soonest that has enough. Groups that may not go there go to the device that is
// fastest for them. The baseline of every paper on placement, and the answer to "does splitting pay
// at all".
#include <algorithm>
#include <optional>

#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"

#include "placers/common/choices.h"

namespace emplace {
namespace {

struct Candidate {
  DeviceId device;
  Nanoseconds total;      // of all ops, those of other devices included
  std::size_t elsewhere;  // groups that may not go there
};

class Single final : public Placer {
 public:
  struct Options {
    std::int64_t device = -1;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.integer("device", &Options::device, -1, Cluster::kMaxDevices - 1,
                                           "The device's index; -1 chooses the best.");
  }
  explicit Single(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng) override;

 private:
  std::vector<DeviceId> candidates(const Problem& problem, const DeviceChoices& choices,
                                   const std::vector<DeviceId>& devices) const;

  Options options_;
};

std::vector<DeviceId> gather(const Problem& problem, const DeviceChoices& choices,
                             DeviceId device) {
  std::vector<DeviceId> device_of_group(problem.num_groups(), device);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (problem.allowed(group, device)) continue;
    device_of_group[group] = fastest_for(problem, group, choices.of(group));
  }
  return device_of_group;
}

Candidate rate(const Problem& problem, const DeviceChoices& choices, DeviceId device) {
  Candidate result{.device = device, .total = 0, .elsewhere = 0};
  const std::vector<DeviceId> device_of_group = gather(problem, choices, device);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    result.total += group_duration(problem, group, device_of_group[group]);
    if (device_of_group[group] != device) ++result.elsewhere;
  }
  return result;
}

// In the order in which to try them.
std::vector<DeviceId> Single::candidates(const Problem& problem, const DeviceChoices& choices,
                                         const std::vector<DeviceId>& devices) const {
  if (options_.device >= 0) {
    if (options_.device >= problem.num_devices()) {
      fail_option("single: device {} does not exist; expected -1 to {}", options_.device,
                  problem.num_devices() - 1);
    }
    return {static_cast<DeviceId>(options_.device)};
  }
  std::vector<Candidate> rated;
  for (const DeviceId device : devices) rated.push_back(rate(problem, choices, device));
  // One that may hold only a few ops would be "single" in name only.
  const auto holds_most = [&](const Candidate& c) {
    return 2 * c.elsewhere <= problem.num_groups();
  };
  if (std::any_of(rated.begin(), rated.end(), holds_most)) {
    std::erase_if(rated, [&](const Candidate& c) { return !holds_most(c); });
  }
  std::stable_sort(rated.begin(), rated.end(), [](const Candidate& a, const Candidate& b) {
    return a.total != b.total ? a.total < b.total : a.elsewhere < b.elsewhere;
  });
  std::vector<DeviceId> order;
  for (const Candidate& candidate : rated) order.push_back(candidate.device);
  return order;
}

PlaceResult Single::place(PlaceContext& context, const Budget&, Rng) {
  const Problem& problem = context.problem();
  const std::vector<DeviceId> devices = mutually_linked_devices(problem);
  const DeviceChoices choices(problem, devices);
  std::optional<Evaluation> best;
  Placement placement;
  Bytes largest_tried = -1;
  for (const DeviceId device : candidates(problem, choices, devices)) {
    // What did not fit on a larger device will not on this one.
    const Bytes memory = problem.cluster().device(device).memory;
    if (memory <= largest_tried) continue;
    largest_tried = memory;
    Placement tried = expand_groups(problem, gather(problem, choices, device));
    check_placement(problem, tried);
    const Evaluation evaluation = context.evaluator().evaluate(tried);
    if (best && !(evaluation < *best)) continue;
    best = evaluation;
    placement = std::move(tried);
    if (evaluation.fits()) break;
  }
  PlaceResult result{.placement = std::move(placement)};
  if (!best->fits()) note_shortage(problem, context.evaluator(), result);
  return result;
}

}  // namespace

EMPLACE_PLACER(single, Single, .family = "heuristic",
               .summary = "Everything on the fastest device, or the fastest where it fits.",
               .reference = "the baseline of every paper on placement")

}  // namespace emplace
