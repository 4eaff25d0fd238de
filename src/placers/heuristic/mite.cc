// MITE of Mayer, Mayer and Laich, "The TensorFlow partitioning and scheduling problem: it's the
// critical path!" (2017): each group of ops on the device of the least
//   memory * importance * traffic * execution time.
//
// The product is the paper's, its factors are our reconstruction:
//   memory      (used + need) / capacity of the device; an unlimited one counts as having room for
//               the whole graph and no more, for otherwise its factor would be 0 whatever it holds
//   importance  1 + rank * (1 - speed / highest speed), with the group's upward rank over the
//               highest one: slow devices are dear for what is far from the end
//   traffic     epsilon + the lengths of the transfers to and from neighbours already placed;
//               infinite where there is no link
//   execution   the group's duration on the device
// Groups are placed in descending upward rank. A byte and a nanosecond are added to memory and
// time, so that no factor is 0.
#include <algorithm>
#include <numeric>

#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"
#include "placer/ranks.h"

#include "placers/common/choices.h"
#include "placers/common/greedy.h"

namespace emplace {
namespace {

class Mite final : public Placer {
 public:
  struct Options {
    double epsilon_us = 10;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.real("epsilon_us", &Options::epsilon_us, 0.001, 1e9,
                                        "What traffic counts where nothing is sent.");
  }
  explicit Mite(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

// What stays the same from group to group and from try to try.
struct Factors {
  std::vector<double> slowness;  // by device: 1 - speed / highest speed
  std::vector<double> rank;      // by group, 0..1
  std::vector<GroupId> order;
  double epsilon_ns = 0;
};

Factors prepare(const Problem& problem, double epsilon_us) {
  Factors factors;
  factors.epsilon_ns = epsilon_us * 1000;
  const std::vector<double> totals = total_durations(problem);
  const double fastest = *std::min_element(totals.begin(), totals.end());
  for (const double total : totals) factors.slowness.push_back(1 - fastest / total);

  const std::vector<Nanoseconds> up = upward_ranks(problem);
  std::vector<Nanoseconds> rank(problem.num_groups(), 0);
  Nanoseconds highest = 1;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    Nanoseconds& own = rank[problem.group_of(op)];
    own = std::max(own, up[op]);
    highest = std::max(highest, up[op]);
  }
  for (const Nanoseconds r : rank) {
    factors.rank.push_back(static_cast<double>(r) / static_cast<double>(highest));
  }
  factors.order.resize(problem.num_groups());
  std::iota(factors.order.begin(), factors.order.end(), GroupId{0});
  std::stable_sort(factors.order.begin(), factors.order.end(),
                   [&](GroupId a, GroupId b) { return rank[a] > rank[b]; });
  return factors;
}

double memory_factor(const MemoryLedger& ledger, GroupId group, DeviceId device, Bytes whole) {
  const Bytes capacity =
      ledger.capacity(device) == kUnlimited ? whole : std::max<Bytes>(ledger.capacity(device), 1);
  return static_cast<double>(ledger.used(device) + ledger.need(group) + 1) /
         static_cast<double>(capacity);
}

PlaceResult Mite::place(PlaceContext& context, const Budget& budget, Rng) {
  const Problem& problem = context.problem();
  const Factors factors = prepare(problem, options_.epsilon_us);
  return fit_memory(problem, context.evaluator(), budget, [&](MemoryLedger& ledger) {
    Bytes whole = 1;
    for (GroupId group = 0; group < problem.num_groups(); ++group) whole += ledger.need(group);
    const auto score = [&](GroupId group, DeviceId device, Nanoseconds sent) {
      const double memory = memory_factor(ledger, group, device, whole);
      const double importance = 1 + factors.rank[group] * factors.slowness[device];
      const double traffic = factors.epsilon_ns + static_cast<double>(sent);
      const double execution = static_cast<double>(group_duration(problem, group, device) + 1);
      return memory * importance * traffic * execution;
    };
    const auto device_of_group = place_by_score(problem, factors.order, ledger, score);
    return PlaceResult{.placement = expand_groups(problem, device_of_group)};
  });
}

}  // namespace

EMPLACE_PLACER(mite, Mite, .family = "heuristic",
               .summary = "Least product of memory, importance, traffic and execution time.",
               .reference = "Mayer, Mayer, Laich 2017")

}  // namespace emplace
