// The Critical Path partitioner of Mayer, Mayer and Laich, "The TensorFlow partitioning and
// scheduling problem: it's the critical path!" (2017): the whole critical path on the fastest
// device, so that nothing on it is ever sent; what finds no room there goes to the next fastest.
//
// The critical path is every op whose upward + downward rank is the largest (HEFT's ranks, of mean
// durations and transfers); a group is on it when one of its ops is. How the paper places the rest
// was not verified: `rest=load` takes the device that would have the least work in time,
// `rest=hash` a random legal one.
#include <algorithm>

#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"
#include "placer/ranks.h"

#include "placers/common/choices.h"

namespace emplace {
namespace {

class CriticalPath final : public Placer {
 public:
  struct Options {
    std::string rest = "load";
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.choice("rest", &Options::rest, {"load", "hash"},
                                          "How ops off the critical path are placed.");
  }
  explicit CriticalPath(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

std::vector<bool> critical_groups(const Problem& problem) {
  std::vector<Nanoseconds> total = upward_ranks(problem);
  const std::vector<Nanoseconds> down = downward_ranks(problem);
  Nanoseconds longest = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    total[op] += down[op];
    longest = std::max(longest, total[op]);
  }
  std::vector<bool> critical(problem.num_groups(), false);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    if (total[op] == longest) critical[problem.group_of(op)] = true;
  }
  return critical;
}

PlaceResult CriticalPath::place(PlaceContext& context, const Budget& budget, Rng rng) {
  const Problem& problem = context.problem();
  const DeviceChoices choices(problem, mutually_linked_devices(problem));
  const std::vector<double> totals = total_durations(problem);
  const std::vector<bool> critical = critical_groups(problem);
  const bool by_load = options_.rest == "load";

  return fit_memory(problem, context.evaluator(), budget, [&](MemoryLedger& ledger) {
    Rng draws = rng;
    std::vector<DeviceId> device_of_group(problem.num_groups());
    std::vector<Nanoseconds> load(problem.num_devices(), 0);
    const auto put = [&](GroupId group, DeviceId device) {
      device_of_group[group] = device;
      load[device] += group_duration(problem, group, device);
      ledger.add(group, device);
    };
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      if (!critical[group]) continue;
      const std::vector<DeviceId> legal = devices_with_room(ledger, group, choices.of(group));
      put(group, *std::min_element(legal.begin(), legal.end(),
                                   [&](DeviceId a, DeviceId b) { return totals[a] < totals[b]; }));
    }
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      if (critical[group]) continue;
      const std::vector<DeviceId> legal = devices_with_room(ledger, group, choices.of(group));
      if (!by_load) {
        put(group, draws.pick(std::span<const DeviceId>(legal)));
        continue;
      }
      const auto load_with = [&](DeviceId device) {
        return load[device] + group_duration(problem, group, device);
      };
      put(group, *std::min_element(legal.begin(), legal.end(), [&](DeviceId a, DeviceId b) {
            return load_with(a) < load_with(b);
          }));
    }
    return PlaceResult{.placement = expand_groups(problem, device_of_group)};
  });
}

}  // namespace

EMPLACE_PLACER(critical_path, CriticalPath, .family = "heuristic",
               .summary = "The critical path on the fastest device, the rest by load.",
               .reference = "Mayer, Mayer, Laich 2017", .randomized = true)

}  // namespace emplace
