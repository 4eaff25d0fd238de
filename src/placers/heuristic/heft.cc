// HEFT: ops by decreasing upward rank, each on the device where it finishes first. Topcuoglu,
// Hariri, Wu: "Performance-effective and low-complexity task scheduling for heterogeneous
// computing", IEEE TPDS 2002. Channels carry one transfer at a time here, as they do in the
// simulator; the paper's have no limit (`contention=false`).
#include <algorithm>
#include <numeric>

#include "placer/placer.h"
#include "placer/ranks.h"

#include "placers/common/list_schedule.h"

namespace emplace {
namespace {

class Heft final : public Placer {
 public:
  struct Options {
    bool insertion = true;
    bool contention = true;
  };

  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .flag("insertion", &Options::insertion,
              "Let an op start in a gap between ops that were scheduled before it.")
        .flag("contention", &Options::contention,
              "Let a channel carry one transfer at a time; else transfers never wait.");
  }

  explicit Heft(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

// By decreasing rank. An op's rank is at least its successors', and the lower index comes first, so
// that the order is topological also where ops take no time.
std::vector<OpId> rank_order(const Problem& problem) {
  const std::vector<Nanoseconds> ranks = upward_ranks(problem);
  std::vector<OpId> order(problem.num_ops());
  std::iota(order.begin(), order.end(), OpId{0});
  std::stable_sort(order.begin(), order.end(), [&](OpId a, OpId b) { return ranks[a] > ranks[b]; });
  return order;
}

// How long the rest of the group will take on the device that the op chooses for it.
Nanoseconds rest_of_group(const ListSchedule& schedule, OpId op, DeviceId device) {
  const Problem& problem = schedule.problem();
  const GroupId group = problem.group_of(op);
  if (schedule.device_of_group(group) != kNoDevice) return 0;
  Nanoseconds total = 0;
  for (const OpId member : problem.group_ops(group)) {
    if (member != op) total += problem.duration(member, device);
  }
  return total;
}

// False when the op has no candidate.
bool commit_earliest_finish(ListSchedule& schedule, OpId op) {
  const Problem& problem = schedule.problem();
  const std::vector<DeviceId>& candidates = schedule.candidates(op);
  DeviceId best = kNoDevice;
  Nanoseconds best_end = ListSchedule::kNever;
  for (const DeviceId device : candidates) {
    const Nanoseconds ready = schedule.data_ready(op, device);
    if (ready == ListSchedule::kNever) continue;
    // A device that runs this op soon but the rest of its group slowly is no gain, so that the rest
    // counts too; on equal devices it is the same for all.
    const Nanoseconds end = schedule.start_from(op, device, ready) + problem.duration(op, device) +
                            rest_of_group(schedule, op, device);
    if (end >= best_end) continue;
    best_end = end;
    best = device;
  }
  if (best == kNoDevice) return false;
  schedule.commit(op, best);
  return !schedule.stuck();
}

PlaceResult Heft::place(PlaceContext& context, const Budget& budget, Rng) {
  const Problem& problem = context.problem();
  const std::vector<OpId> order = rank_order(problem);
  return place_by_list(problem, context.evaluator(), budget,
                       {.insertion = options_.insertion, .contention = options_.contention}, true,
                       [&](ListSchedule& schedule) {
                         return std::all_of(order.begin(), order.end(), [&](OpId op) {
                           return schedule.floats(op) || commit_earliest_finish(schedule, op);
                         });
                       });
}

}  // namespace

EMPLACE_PLACER(heft, Heft, .family = "heuristic",
               .summary = "Ops by upward rank, each where it finishes first.",
               .reference = "Topcuoglu, Hariri, Wu, IEEE TPDS 2002")

}  // namespace emplace
