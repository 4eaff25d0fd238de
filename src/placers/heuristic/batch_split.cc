// Batch Split of Mayer, Mayer and Laich, "The TensorFlow partitioning and scheduling problem: it's
// the critical path!" (2017): groups of ops in the order of their rank, cut into batches, the batch
// of the highest ranks on the fastest device.
//
// The paper's details are not public; chosen here: a rank is the length of the longest path through
// the op (upward + downward rank; `rank=upward` takes the path behind it alone), a group has its
// highest op's; a batch holds a share of all the ops' time that is in proportion to its device's
// speed; a group that may not use, or finds no room on, the batch's device goes to the next slower
// one, after the slowest to the fastest.
#include <algorithm>
#include <numeric>

#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"
#include "placer/ranks.h"

#include "placers/common/choices.h"

namespace emplace {
namespace {

class BatchSplit final : public Placer {
 public:
  struct Options {
    std::string rank = "total";
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.choice("rank", &Options::rank, {"total", "upward"},
                                          "The longest path through an op, or behind it.");
  }
  explicit BatchSplit(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  std::vector<GroupId> order(const Problem& problem) const;

  Options options_;
};

std::vector<GroupId> BatchSplit::order(const Problem& problem) const {
  std::vector<Nanoseconds> rank = upward_ranks(problem);
  if (options_.rank == "total") {
    const std::vector<Nanoseconds> down = downward_ranks(problem);
    for (OpId op = 0; op < problem.num_ops(); ++op) rank[op] += down[op];
  }
  std::vector<Nanoseconds> rank_of_group(problem.num_groups(), 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    Nanoseconds& highest = rank_of_group[problem.group_of(op)];
    highest = std::max(highest, rank[op]);
  }
  std::vector<GroupId> groups(problem.num_groups());
  std::iota(groups.begin(), groups.end(), GroupId{0});
  std::stable_sort(groups.begin(), groups.end(),
                   [&](GroupId a, GroupId b) { return rank_of_group[a] > rank_of_group[b]; });
  return groups;
}

// How much of the ops' mean time each device's batch holds.
std::vector<Nanoseconds> batch_sizes(const Problem& problem, const std::vector<DeviceId>& devices,
                                     const std::vector<double>& totals) {
  double all = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    all += static_cast<double>(problem.mean_duration(op));
  }
  double speed = 0;
  for (const DeviceId device : devices) speed += 1 / totals[device];
  std::vector<Nanoseconds> sizes(problem.num_devices(), 0);
  for (const DeviceId device : devices) {
    sizes[device] = static_cast<Nanoseconds>(all / totals[device] / speed);
  }
  return sizes;
}

PlaceResult BatchSplit::place(PlaceContext& context, const Budget& budget, Rng) {
  const Problem& problem = context.problem();
  std::vector<DeviceId> by_speed = mutually_linked_devices(problem);
  const DeviceChoices choices(problem, by_speed);
  const std::vector<double> totals = total_durations(problem);
  std::stable_sort(by_speed.begin(), by_speed.end(),
                   [&](DeviceId a, DeviceId b) { return totals[a] < totals[b]; });
  const std::vector<Nanoseconds> sizes = batch_sizes(problem, by_speed, totals);
  const std::vector<GroupId> groups = order(problem);

  return fit_memory(problem, context.evaluator(), budget, [&](MemoryLedger& ledger) {
    std::vector<DeviceId> device_of_group(problem.num_groups());
    std::vector<Nanoseconds> load(problem.num_devices(), 0);
    std::size_t batch = 0;
    for (const GroupId group : groups) {
      while (batch + 1 < by_speed.size() && load[by_speed[batch]] >= sizes[by_speed[batch]]) {
        ++batch;
      }
      const std::vector<DeviceId> legal = devices_with_room(ledger, group, choices.of(group));
      DeviceId device = legal.front();
      for (std::size_t i = 0; i < by_speed.size(); ++i) {
        const DeviceId next = by_speed[(batch + i) % by_speed.size()];
        if (!std::binary_search(legal.begin(), legal.end(), next)) continue;
        device = next;
        break;
      }
      device_of_group[group] = device;
      load[device] += group_mean_duration(problem, group);
      ledger.add(group, device);
    }
    return PlaceResult{.placement = expand_groups(problem, device_of_group)};
  });
}

}  // namespace

EMPLACE_PLACER(batch_split, BatchSplit, .family = "heuristic",
               .summary = "Ops by their rank, in batches, the highest on the fastest device.",
               .reference = "Mayer, Mayer, Laich 2017")

}  // namespace emplace
