#include "placers/local/starts.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"

#include "placer/placer.h"
#include "placer/scheduler.h"

#include "placers/all.h"

namespace emplace {
namespace {

constexpr double kShare = 0.25;
// Placers that run before the budget is asked again, whatever the number of threads.
constexpr std::size_t kRound = 4;

struct Classical {
  const char* key;
  OpId most_ops;
};

// The first is what is left without a budget; then those that tend to be best. Limits are where a
// run takes more than about a second.
constexpr Classical kClassical[] = {
    {"single", kNoOp},      {"heft", kNoOp},          {"expert", kNoOp},   {"metis", kNoOp},
    {"m_etf", kNoOp},       {"critical_path", kNoOp}, {"mite", kNoOp},     {"m_topo", kNoOp},
    {"batch_split", kNoOp}, {"dfs", kNoOp},           {"scotch", 300'000}, {"mincut", 300'000},
    {"m_sct", 3'000},
};

struct Task {
  std::string origin;
  std::optional<Solution> given;  // to be improved by its order alone
  Rng rng{0};

  std::optional<Solution> found = std::nullopt;
  std::exception_ptr error = nullptr;
  std::int64_t evaluations = 0;
};

std::vector<Task> make_tasks(std::span<const std::string> placers, const PlaceContext& context,
                             const Rng& rng) {
  std::vector<Task> tasks;
  if (context.evaluator().order_is_free()) {
    for (const Solution& start : context.starts()) tasks.push_back({start.origin, start});
  }
  for (const std::string& key : placers) {
    tasks.push_back({key, std::nullopt, rng.split(tasks.size())});
  }
  return tasks;
}

// What remains of the budget, and of that a share.
Budget share_of(const Budget& budget, std::int64_t evaluations_so_far) {
  Budget share = budget;
  if (share.seconds) {
    const double elapsed = budget.elapsed_seconds();
    share.seconds = elapsed + std::max(0.0, *share.seconds - elapsed) * kShare;
  }
  if (share.evaluations) {
    const std::int64_t left = std::max<std::int64_t>(0, *share.evaluations - evaluations_so_far);
    share.evaluations =
        evaluations_so_far + static_cast<std::int64_t>(static_cast<double>(left) * kShare);
  }
  return share;
}

// Has a context of its own, so that what it spends does not depend on who runs beside it.
void run(Task& task, const Evaluator& shared, const Budget& budget) {
  PlaceContext context(shared, shared.objective());
  Evaluator& evaluator = context.evaluator();
  try {
    if (task.given) {
      task.found = with_best_order(evaluator, budget, *std::move(task.given));
    } else {
      PlaceResult placed =
          all_placers().make(MethodSpec::parse(task.origin))->place(context, budget, task.rng);
      check_placement(context.problem(), placed.placement);
      task.found = with_best_order(
          evaluator, budget,
          {.placement = std::move(placed.placement), .schedule = std::move(placed.schedule)});
    }
    task.found->origin = task.origin;
  } catch (const Error&) {
    task.error = std::current_exception();
  }
  task.evaluations = evaluator.evaluations();
}

bool holds(const std::vector<Solution>& list, const Solution& solution) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Solution& s) { return s.placement == solution.placement; });
}

// Each placement once.
std::vector<Solution> best_first(std::vector<Solution> found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const Solution& a, const Solution& b) { return a.value < b.value; });
  std::vector<Solution> kept;
  for (Solution& solution : found) {
    if (!holds(kept, solution)) kept.push_back(std::move(solution));
  }
  return kept;
}

}  // namespace

Solution with_best_order(Evaluator& evaluator, const Budget& budget, Solution solution) {
  const Problem& problem = evaluator.problem();
  solution.schedule = evaluator.schedule_of(solution.placement, std::move(solution.schedule));
  solution.value = evaluator.evaluate(solution.placement, solution.schedule);
  if (!evaluator.order_is_free()) return solution;
  for (const SchedulerInfo& scheduler : schedulers()) {
    if (budget.spent(evaluator.evaluations())) break;
    Schedule schedule = make_schedule(problem, solution.placement, scheduler.key);
    if (schedule.priorities == solution.schedule.priorities) continue;
    const Evaluation value = evaluator.evaluate(solution.placement, schedule);
    if (!(value < solution.value)) continue;
    solution.value = value;
    solution.schedule = std::move(schedule);
  }
  return solution;
}

std::vector<Solution> starts_of(std::span<const std::string> placers, PlaceContext& context,
                                const Budget& budget, Rng rng) {
  const Budget share = share_of(budget, context.evaluations());
  Budget clock = share;
  clock.evaluations.reset();
  std::vector<Solution> found = context.starts();
  for (const Solution& start : found) context.incumbent().offer(start);

  std::exception_ptr first_error = nullptr;
  std::vector<Task> tasks = make_tasks(placers, context, rng);
  for (std::size_t next = 0; next < tasks.size();) {
    const bool spent = share.spent(context.evaluations());
    if ((spent || context.incumbent().optimal()) && !found.empty()) break;
    const std::size_t count = spent ? 1 : std::min(kRound, tasks.size() - next);
    Budget allowance = share;
    allowance.threads = 1;
    if (share.evaluations) {
      const std::int64_t left =
          std::max<std::int64_t>(0, *share.evaluations - context.evaluations());
      allowance.evaluations = left / static_cast<std::int64_t>(count);
    }
    parallel_for(count, budget.threads, [&](std::size_t i) {
      if (i > 0 && clock.spent(0)) return;
      run(tasks[next + i], context.evaluator(), allowance);
    });
    for (std::size_t i = 0; i < count; ++i) {
      Task& task = tasks[next + i];
      context.evaluator().count(task.evaluations);
      if (task.error && !first_error) first_error = task.error;
      if (!task.found) continue;
      context.incumbent().offer(*task.found);
      found.push_back(*std::move(task.found));
    }
    next += count;
  }
  if (found.empty()) std::rethrow_exception(first_error);
  return best_first(std::move(found));
}

std::vector<Solution> classical_starts(PlaceContext& context, const Budget& budget, Rng rng,
                                       std::size_t at_most) {
  std::vector<std::string> placers;
  // Of a search that goes on, they are known, or were no better than what is.
  const bool goes_on = !context.part().first() && !context.starts().empty();
  for (const Classical& classical : kClassical) {
    if (goes_on) break;
    if (context.problem().num_ops() <= classical.most_ops) placers.emplace_back(classical.key);
  }
  std::vector<Solution> starts = starts_of(placers, context, budget, rng);
  for (std::size_t i = starts.size(); i-- > 1 && starts.size() > at_most;) {
    if (!holds(context.starts(), starts[i])) {
      starts.erase(starts.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return starts;
}

}  // namespace emplace
