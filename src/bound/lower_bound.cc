// Every bound here is a number that no placement's step is below, and the largest counts. The quick
// ones come from earliest starts and latest ends (ends.h): the longest path with its transfers, and
// the work that lies between the starts and ends of all ops, shared by all devices. `Improvement`
// adds, from cheap to costly and as long as the budget lasts: refuting step times by what must then
// share a device (refute.h), earliest starts raised by what ancestors nearby or all of them cost
// (starts.h, ends.h), and work, memory and traffic weighed together (balance.h). Each holds by
// itself, so stopping anywhere leaves a valid bound; none is tight in general.
//
// The quick bounds take O((ops + edges) * classes^2 + ops log ops). So does a round of refuting or
// sweeping, and where ancestors are looked at, up to 64 of them for each op and class.
#include "bound/lower_bound.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/wide.h"

#include "bound/alive.h"
#include "bound/balance.h"
#include "bound/dag.h"
#include "bound/ends.h"
#include "bound/memory.h"
#include "bound/refute.h"

namespace emplace {
namespace {

using OptionalNeeds = std::optional<MemoryNeeds>;  // nothing: memory does not matter

// Groups may run where memory allows it. Where one may run nowhere, nothing fits and no bound is of
// interest, but there must still be one.
BoundDag make_dag(const Problem& problem, const OptionalNeeds& needs) {
  const auto anywhere = [](GroupId, DeviceId) { return true; };
  if (!needs) return BoundDag(problem, anywhere);
  BoundDag dag(problem, [&](GroupId group, DeviceId device) {
    return needs->possible(problem, group, device);
  });
  for (std::uint32_t node = 0; node < dag.size(); ++node) {
    if (dag.fastest(node) == kInfinite) return BoundDag(problem, anywhere);
  }
  return dag;
}

// For any weights of the devices, T times their sum is at least the sum over ops of the least
// weight * duration. Weights in inverse proportion to the time that a device needs for everything
// are the best for devices that differ only in speed. An op also blocks its device for the gap,
// except that the last gap of each device may lie after the end.
Nanoseconds total_work(const Problem& problem, const OptionalNeeds& needs, bool with_gaps) {
  constexpr double kUnit = 1U << 20U;
  std::vector<double> all(problem.num_devices(), 1);
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      all[device] += static_cast<double>(problem.duration(op, device));
    }
  }
  const double least_of_all = *std::min_element(all.begin(), all.end());
  const auto gap = [&](DeviceId device) {
    return with_gaps ? problem.cluster().device(device).gap : 0;
  };
  std::vector<Wide> weights;
  Wide sum = 0;
  Wide spare = 0;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    weights.push_back(static_cast<Wide>(kUnit * (least_of_all / all[device])));
    sum += weights[device];
    spare += weights[device] * static_cast<Wide>(gap(device));
  }
  Wide work = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const GroupId group = problem.group_of(op);
    std::optional<Wide> least;
    for (const DeviceId device : problem.allowed_devices(group)) {
      if (needs && !needs->possible(problem, group, device)) continue;
      const Nanoseconds time = problem.duration(op, device);
      const Wide blocked = time > 0 ? weights[device] * static_cast<Wide>(time + gap(device)) : 0;
      least = least ? std::min(*least, blocked) : blocked;
    }
    work += least.value_or(0);
  }
  return work <= spare ? 0 : static_cast<Nanoseconds>((work - spare + sum - 1) / sum);
}

LowerBound better_of(LowerBound a, LowerBound b) {
  return a.step >= b.step ? a : b;
}

LowerBound quick_bound(const BoundEnds& ends) {
  return better_of({ends.path(), "critical path with its transfers"},
                   {ends.work(), "work between the first and the last ops"});
}

LowerBound first_bound(const Problem& problem, const OptionalNeeds& needs, const BoundEnds& ends) {
  LowerBound bound = quick_bound(ends);
  if (ends.dag().lumped()) {
    bound = better_of(bound, {total_work(problem, needs, true), "total work"});
  }
  bound.step = std::min(bound.step, problem.horizon());
  return bound;
}

LowerBound step_bound(const Problem& problem, const OptionalNeeds& needs) {
  BoundEnds ends(make_dag(problem, needs));
  ends.propagate();
  return first_bound(problem, needs, ends);
}

class Improvement {
 public:
  Improvement(const Problem& problem, Nanoseconds upper, const Budget& budget,
              const std::function<void(const LowerBound&)>& on_improvement)
      : problem_(problem),
        upper_(std::min(upper, problem.horizon())),
        budget_(budget),
        on_improvement_(on_improvement),
        needs_(memory_needs(problem, MemoryRule::kStep)),
        ends_(make_dag(problem, needs_)) {}

  const LowerBound& best() const { return best_; }

  void run() {
    ends_.propagate();
    const LowerBound first = first_bound(problem_, needs_, ends_);
    raise(first);
    refute(0);
    sweep({.ancestors = kAncestors});
    balance(first.step);
    refute(kAncestors / 2);
    for (const std::size_t stride : {512, 64, 8, 1}) {
      if (stride == 1 || ends_.dag().size() > stride)
        sweep({.ancestors = kAncestors, .stride = stride});
    }
    refute(kAncestors / 2);
  }

 private:
  static constexpr std::size_t kAncestors = 64;
  static constexpr std::size_t kMoments = 4;

  bool go_on() const { return best_.step < upper_ && !budget_.spent(rounds_); }

  void raise(LowerBound bound) {
    bound.step = std::min(bound.step, upper_);
    if (bound.step <= best_.step) return;
    best_ = std::move(bound);
    if (on_improvement_) on_improvement_(best_);
  }

  void sweep(const Pass& pass) {
    if (!go_on()) return;
    std::vector<Nanoseconds> through = ends_.through();
    const auto more = [&] { return go_on(); };
    raise_starts(ends_.heads(), pass, through, more);
    std::reverse(through.begin(), through.end());
    raise_starts(ends_.tails(), pass, through, more);
    ++rounds_;
    raise(quick_bound(ends_));
  }

  void balance(Nanoseconds simple) {
    if (!go_on()) return;
    ++rounds_;
    balance_bound(
        problem_, simple, [&] { return go_on(); },
        [&](Nanoseconds step) {
          raise({step, "work within memory"});
        });
  }

  // Halves the interval between what is proven and what could not be refuted.
  void refute(std::size_t ancestors) {
    constexpr Nanoseconds kPrecision = 8192;
    if (!go_on()) return;
    if (held_.empty()) {
      for (const AliveAt& alive : Liveness(problem_).full_moments(kMoments)) {
        held_.emplace_back(problem_, alive);
      }
    }
    BoundEnds open = ends_;  // holds of every step shorter than `limit`
    Nanoseconds limit = upper_;
    for (Nanoseconds next = upper_; go_on();) {
      BoundEnds trial = open;
      ++rounds_;
      if (refutes(trial, next, held_, ancestors, [&] { return go_on(); })) {
        raise({next, "what must share a device"});
      } else {
        open = std::move(trial);
        limit = next;
      }
      if (limit - best_.step <= std::max<Nanoseconds>(1, limit / kPrecision)) return;
      next = best_.step + (limit - best_.step + 1) / 2;
    }
  }

  const Problem& problem_;
  Nanoseconds upper_;
  const Budget& budget_;
  const std::function<void(const LowerBound&)>& on_improvement_;
  OptionalNeeds needs_;
  BoundEnds ends_;
  std::vector<HeldAt> held_;
  LowerBound best_;
  std::int64_t rounds_ = 0;
};

}  // namespace

LowerBound period_lower_bound(const Problem& problem) {
  Nanoseconds largest = 0;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    Nanoseconds least = kInfinite;
    for (const DeviceId device : problem.allowed_devices(group)) {
      Nanoseconds load = 0;
      for (const OpId op : problem.group_ops(group)) load += problem.duration(op, device);
      least = std::min(least, load);
    }
    largest = std::max(largest, least);
  }
  const Nanoseconds work = total_work(problem, std::nullopt, false);
  if (largest > work) return {largest, "largest group"};
  return {work, "total work"};
}

LowerBound lower_bound(const Problem& problem, bool fitting_only) {
  OptionalNeeds needs;
  if (fitting_only) needs = memory_needs(problem, MemoryRule::kStep);
  return step_bound(problem, needs);
}

LowerBound improve_bound(const Problem& problem, Nanoseconds upper, const Budget& budget,
                         const std::function<void(const LowerBound&)>& on_improvement) {
  Improvement improvement(problem, upper, budget, on_improvement);
  improvement.run();
  return improvement.best();
}

LowerBound lower_bound(const Problem& problem, const Objective& objective) {
  return objective.match([&](const StepTime&) { return lower_bound(problem); },
                         [&](const StreamPeriod&) { return period_lower_bound(problem); });
}

}  // namespace emplace
