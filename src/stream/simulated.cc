#include "stream/simulated.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

#include "sim/stream_run.h"

#include "placer/memory.h"

#include "stream/solve.h"

namespace emplace {
namespace {

constexpr int kEstimates = 4;
constexpr double kLeastHeld = 0.25;
constexpr double kMostHeld = 4.0 * kMostInFlight;
// A period that is this much above the load was kept there by memory, or by waiting.
constexpr double kNearLoad = 1.005;

// The part of what is left of the budget that one of so many rounds has, for a context of its own.
Budget budget_of_round(const Budget& budget, std::int64_t evaluations, int rounds_left) {
  Budget own = budget;
  if (own.seconds) {
    const double elapsed = budget.elapsed_seconds();
    *own.seconds = elapsed + std::max(0.0, *budget.seconds - elapsed) / rounds_left;
  }
  if (own.evaluations) {
    *own.evaluations = std::max<std::int64_t>(0, *budget.evaluations - evaluations) / rounds_left;
  }
  return own;
}

// What the search of one round found by its estimate, and what it came to.
struct Round {
  Evaluation load;
  Evaluation value;
  bool least = false;  // no placement has a lower load
};

Round run_round(PlaceContext& context, const StreamModel& relaxed, double share,
                const Budget& budget, const Rng& rng) {
  const StreamModel model = estimated_model(context, share);
  std::vector<Solution> starts = context.starts();
  starts.push_back(*context.incumbent().best());
  PlaceContext own(context.evaluator(), context.objective(), std::move(starts));
  const LowerBound known = context.incumbent().bound();
  own.incumbent().raise(known);
  search_loads(own, model, relaxed, budget, rng);
  context.evaluator().count(own.evaluations());
  // Only what was proven here: what others said is theirs to prove.
  const LowerBound bound = own.incumbent().bound();
  if (bound.step > known.step) context.incumbent().raise(bound);
  Solution found = *own.incumbent().best();
  Round round{.load = found.value, .value = {}, .least = own.incumbent().optimal()};
  found.value = context.evaluator().evaluate_exactly(found.placement, found.schedule);
  round.value = found.value;
  context.incumbent().offer(std::move(found));
  return round;
}

// How much of a step's memory to count next: more where memory kept the period above the load, less
// where nothing fits by the estimate, or where less might allow a lower load.
class NextHeld {
 public:
  explicit NextHeld(double first) : held_(first) {}

  double held() const { return held_; }
  // Whether there is more to gain.
  bool learn(const Round& round) {
    const bool near =
        static_cast<double>(round.value.step) <= kNearLoad * static_cast<double>(round.load.step);
    if (round.load.fits() && (!round.value.fits() || !near)) {
      least_ = held_;
      held_ = most_ > 0 ? (least_ + most_) / 2 : held_ * 2;
      return held_ <= kMostHeld;
    }
    if (round.load.fits() && round.least) return false;
    most_ = held_;
    held_ = (least_ + most_) / 2;
    return held_ >= kLeastHeld;
  }

 private:
  double held_;
  double least_ = 0;
  double most_ = 0;  // 0: none was too much
};

}  // namespace

StreamModel estimated_model(PlaceContext& context, double share) {
  const Problem& problem = context.problem();
  const MemoryModel one_step(problem, context.evaluator());
  std::vector<Bytes> memory;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    const Bytes resident = problem.group_resident_bytes(group);
    const auto passing = static_cast<double>(one_step.need(group) - resident);
    memory.push_back(resident + static_cast<Bytes>(share * passing));
  }
  return {problem, Overlap::kFull, std::move(memory)};
}

StreamModel resident_model(const Problem& problem) {
  std::vector<Bytes> memory;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    memory.push_back(problem.group_resident_bytes(group));
  }
  return {problem, Overlap::kFull, std::move(memory)};
}

void offer_exactly(PlaceContext& context, Solution solution) {
  solution.value = context.evaluator().evaluate_exactly(solution.placement, solution.schedule);
  context.incumbent().offer(std::move(solution));
}

void solve_simulated_stream(PlaceContext& context, const Budget& budget, const Rng& rng) {
  const StreamModel relaxed = resident_model(context.problem());
  NextHeld next(context.problem().num_devices());
  for (int i = 0; i < kEstimates; ++i) {
    if (context.incumbent().optimal() || budget.spent(context.evaluations())) return;
    const Budget own = budget_of_round(budget, context.evaluations(), kEstimates - i);
    const Round round =
        run_round(context, relaxed, next.held(), own, rng.split(static_cast<std::uint64_t>(i)));
    if (!next.learn(round)) return;
  }
}

}  // namespace emplace
