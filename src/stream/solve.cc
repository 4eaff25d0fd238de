// One thread: search and bound take turns, and the next turn goes to the one that found something
// less long ago, measured in its own time; neither has less than a fifth. Several threads, and no
// evaluation budget: the bound has a thread of its own beside the search. In both cases all that
// they share is the incumbent, so either may end the other by closing the gap.
//
// Under an evaluation budget the clock counts moves and table cells rather than seconds, and there
// is only the first way: so the answer depends on the seed alone. Ends when the incumbent is proven
// optimal, the budget is spent, or neither has anything left to do. Exact if it ends by proof.
// Ours.
#include "stream/solve.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

#include "placer/memory.h"

#include "bound/lower_bound.h"
#include "stream/bound.h"
#include "stream/model.h"
#include "stream/search.h"

namespace emplace {
namespace {

constexpr double kLeastShare = 0.2;  // of the time, for each of the two
// Cells of the bound's tables that take about as long as one move of the search.
constexpr std::int64_t kCellsPerMove = 64;

// How much one of the two has been given, and how much of that since it last found something.
struct Effort {
  double used = 0;
  double idle = 0;

  void add(double more, bool improved) {
    used += more;
    idle = improved ? 0 : idle + more;
  }
};

std::vector<std::vector<DeviceId>> by_item(const Problem& problem,
                                           const std::vector<Solution>& starts) {
  std::vector<std::vector<DeviceId>> result;
  for (const Solution& start : starts) {
    std::vector<DeviceId>& device_of = result.emplace_back(problem.num_groups());
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      device_of[problem.group_of(op)] = start.placement[op];
    }
  }
  return result;
}

class StreamSolver {
 public:
  // No placement that fits by the rule of the problem is left out by `relaxed`.
  StreamSolver(PlaceContext& context, const StreamModel& model, const StreamModel& relaxed,
               const Budget& budget, Rng rng)
      : problem_(context.problem()),
        evaluator_(context.evaluator()),
        incumbent_(context.incumbent()),
        budget_(budget.or_default()),
        search_(model, rng.next(), by_item(problem_, context.starts()),
                [this](const StreamSolution& solution) { offer(solution); }),
        bounder_(relaxed) {
    raise();
  }

  void run() {
    if (budget_.threads > 1 && !budget_.evaluations) {
      work_side_by_side();
    } else {
      take_turns();
    }
  }
  bool nothing_fits() const { return bounder_.nothing_fits(); }

 private:
  void offer(const StreamSolution& found) {
    incumbent_.offer({.placement = expand_groups(problem_, found.device_of_item),
                      .schedule = {},
                      .value = {.step = found.period, .overflow = found.overflow},
                      .origin = "stream search"});
  }
  void raise() { incumbent_.raise({bounder_.bound().period, bounder_.bound().reason}); }

  // A period that is of no more interest.
  Nanoseconds upper() const {
    const std::optional<Evaluation> value = incumbent_.value();
    return value && value->fits() ? value->step : std::numeric_limits<Nanoseconds>::max();
  }
  bool finished() const { return incumbent_.optimal() || budget_.spent(evaluator_.evaluations()); }
  // What is left, for one that has counted so many evaluations itself.
  Budget rest(std::int64_t counted) const {
    Budget own = budget_;
    if (own.evaluations) *own.evaluations += counted - evaluator_.evaluations();
    return own;
  }

  void search_round(int threads) {
    const std::int64_t before = search_.moves();
    Budget own = rest(before);
    own.threads = threads;
    search_.round(own, incumbent_.bound().step);
    evaluator_.count(search_.moves() - before);
  }

  void bound_step() {
    const std::int64_t before = bounder_.rounds();
    bounder_.step(upper(), rest(before));
    evaluator_.count(bounder_.rounds() - before);
    raise();
  }

  // The one that is less far from its last success, in its own time; both get some.
  bool bound_is_next() const {
    const double least = kLeastShare * (searching_.used + bounding_.used);
    if (bounding_.used < least) return true;
    if (searching_.used < least) return false;
    return bounding_.idle < searching_.idle;
  }

  // In seconds, or, where the answer must not depend on them, in moves.
  double clock(std::int64_t moves) const {
    return budget_.evaluations ? static_cast<double>(moves) : budget_.elapsed_seconds();
  }

  void take_turns() {
    while (!finished()) {
      const bool can_bound = bounder_.open(upper());
      if (!can_bound && !search_.open()) return;
      if (can_bound && (!search_.open() || bound_is_next())) {
        const double before = clock(bounder_.cells() / kCellsPerMove);
        const Nanoseconds bound = bounder_.bound().period;
        bound_step();
        bounding_.add(clock(bounder_.cells() / kCellsPerMove) - before,
                      bounder_.bound().period > bound);
      } else {
        const double before = clock(search_.moves());
        const std::optional<Evaluation> value = incumbent_.value();
        search_round(budget_.threads);
        searching_.add(clock(search_.moves()) - before, incumbent_.value() != value);
      }
    }
  }

  void work_side_by_side() {
    std::atomic<bool> ending{false};
    const auto improve_bound = [&] {
      while (!ending && !finished() && bounder_.open(upper())) bound_step();
    };
    std::future<void> bounding;
    const struct Ending {  // when an error leaves, too
      std::atomic<bool>& flag;
      ~Ending() { flag = true; }
    } guard{ending};
    while (!finished()) {
      if (bounding.valid() &&
          bounding.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
        bounding.get();
      }
      if (!bounding.valid() && bounder_.open(upper())) {
        bounding = std::async(std::launch::async, improve_bound);
      }
      if (search_.open()) {
        search_round(bounding.valid() ? budget_.threads - 1 : budget_.threads);
      } else if (bounding.valid()) {
        bounding.get();
      } else {
        break;
      }
    }
    ending = true;
    if (bounding.valid()) bounding.get();
  }

  const Problem& problem_;
  Evaluator& evaluator_;
  Incumbent& incumbent_;
  Budget budget_;
  StreamSearch search_;
  StreamBounder bounder_;
  Effort searching_;
  Effort bounding_;
};

}  // namespace

PlaceResult solve_stream(PlaceContext& context, const StreamPeriod& objective, const Budget& budget,
                         Rng rng) {
  const Problem& problem = context.problem();
  const StreamModel model(problem, objective.overlap);
  StreamSolver solver(context, model, model, budget, rng);
  solver.run();
  std::optional<Solution> best = context.incumbent().best();
  EMPLACE_CHECK(best.has_value());
  PlaceResult result{.placement = std::move(best->placement),
                     .schedule = std::move(best->schedule)};
  if (best->value.fits()) return result;
  note_shortage(problem, context.evaluator(), result);
  if (const auto why = why_nothing_fits(problem, MemoryRule::kStream)) {
    result.notes.push_back("no placement fits: " + *why);
  } else if (solver.nothing_fits()) {
    result.notes.push_back("no placement fits: proven by all contents that devices can have");
  }
  return result;
}

void search_loads(PlaceContext& context, const StreamModel& model, const StreamModel& relaxed,
                  const Budget& budget, Rng rng) {
  StreamSolver(context, model, relaxed, budget, rng).run();
}

}  // namespace emplace
