// The schedulers of Mayer, Mayer and Laich, "The TensorFlow partitioning and scheduling problem:
// it's the critical path!" (2017), which reorder what is ready on a device once ops are placed.
//
// pct: the priority of an op is the longest path from its start to the end of the step, with the
// durations and transfers of this very placement; waiting for a busy device or channel is not seen.
//
// msr: only the name and the idea of the paper's rule are public ("prefers vertices whose
// successors matter most, or unblock other devices"), so this is our reconstruction: the priority
// of an op is the sum of its successors' upward ranks, a successor on another device counting
// twice, because it sets an otherwise idle device to work. An instant successor (a view) matters
// only through what it unblocks in its turn, so its own sum stands in its place.
#include "placer/scheduler.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace emplace {
namespace {

constexpr std::int64_t kRemoteWeight = 2;
// Sums of ranks along many paths may exceed 63 bits; they stop here, far from overflow.
constexpr std::int64_t kMaxPriority = 1'000'000'000'000'000'000;

std::int64_t capped_sum(std::int64_t a, std::int64_t b) {
  return std::min(a + b, kMaxPriority);
}

std::int64_t weighted(std::int64_t rank, bool remote) {
  return std::min(rank, kMaxPriority) * (remote ? kRemoteWeight : 1);
}

std::vector<Nanoseconds> placed_upward_ranks(const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  std::vector<Nanoseconds> up(graph.num_ops(), 0);
  for (OpId op = graph.num_ops(); op-- > 0;) {
    up[op] += problem.duration(op, placement[op]);
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      const Nanoseconds transfer =
          problem.transfer_time(tensor, placement[producer], placement[op]);
      // A missing link makes the placement invalid, which is not for the scheduler to say.
      up[producer] = std::max(up[producer], std::max<Nanoseconds>(transfer, 0) + up[op]);
    }
    for (const OpId before : graph.after(op)) up[before] = std::max(up[before], up[op]);
  }
  return up;
}

std::vector<std::int64_t> successor_sums(const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  const std::vector<Nanoseconds> up = placed_upward_ranks(problem, placement);
  std::vector<std::int64_t> sums(graph.num_ops(), 0);
  std::vector<OpId> last_counted(graph.num_ops(), kNoOp);  // an op is a successor once
  for (OpId op = graph.num_ops(); op-- > 0;) {
    const bool instant = problem.duration(op, placement[op]) == 0;
    const auto count_for = [&](OpId before) {
      if (last_counted[before] == op) return;
      last_counted[before] = op;
      const bool remote = placement[before] != placement[op];
      sums[before] = capped_sum(sums[before], weighted(instant ? sums[op] : up[op], remote));
    };
    for (const TensorId tensor : graph.inputs(op)) count_for(graph.producer(tensor));
    for (const OpId before : graph.after(op)) count_for(before);
  }
  return sums;
}

}  // namespace

const std::vector<SchedulerInfo>& schedulers() {
  static const std::vector<SchedulerInfo> known = {
      {"fifo", "The op that became ready first."},
      {"pct", "The op with the longest path to the end of the step."},
      {"msr", "The op whose successors matter most, those on other devices twice."},
  };
  return known;
}

void require_scheduler(std::string_view key) {
  std::vector<std::string> known;
  for (const SchedulerInfo& info : schedulers()) {
    if (info.key == key) return;
    known.push_back(info.key);
  }
  fail_option("unknown scheduler '{}'; expected one of: {}", key, fmt::join(known, ", "));
}

Schedule make_schedule(const Problem& problem, const Placement& placement, std::string_view key) {
  require_scheduler(key);
  if (key == "fifo") return {};
  if (key == "pct") return {.priorities = placed_upward_ranks(problem, placement)};
  return {.priorities = successor_sums(problem, placement)};
}

}  // namespace emplace
