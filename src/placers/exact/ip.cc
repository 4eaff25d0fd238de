// Integer programs, solved by branch and cut: Tarnawski et al., "Efficient Algorithms for Device
// Placement of DNN Graph Operators", NeurIPS 2020.
//
// For a stream: which item is on which device, such that the largest load is the least
// (stream/assignment_program.h). For a step: devices, starts and orders
// (placers/common/schedule_program.h); the simulator says how long the step really is. What is
// proven on the way is a bound for every placement. Models that are too large are first coarsened;
// then the answer is the best for the clusters only, and nothing is proven.
//
// Exact where the solver finishes on the problem's own items and a stream is what is asked for; for
// a step the model is a relaxation and its optimum a bound. Exponential at worst, so a program of
// more than 30,000 columns is not begun.
#include <algorithm>
#include <numeric>
#include <optional>

#include "placer/linked_devices.h"
#include "placer/memory.h"
#include "placer/placer.h"

#include "placers/common/choices.h"
#include "placers/common/earliest_task.h"
#include "placers/common/list_schedule.h"
#include "placers/common/schedule_tasks.h"

#include "stream/assignment_program.h"
#include "stream/chain.h"
#include "stream/coarsen.h"
#include "stream/fill.h"
#include "stream/simulated.h"
#include "stream/state.h"

namespace emplace {
namespace {

// Beyond these the solver would not come to its first branch in any reasonable time.
constexpr int kMostColumns = 30'000;
// Ops that take no time make the program of a step larger, but hardly harder.
constexpr std::uint32_t kMostOpsPerTimed = 8;
constexpr DeviceId kMostStepDevices = 64;
constexpr std::size_t kMostLengths = 200'000;  // edges, times pairs of devices

constexpr const char* kTooLarge =
    "the integer program would be too large: this is the placement that it would begin from";

class Ip final : public Placer {
 public:
  struct Options {
    std::int64_t items = 200;
    std::int64_t tasks = 40;
  };
  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}
        .integer("items", &Options::items, 1, 10'000,
                 "For a stream: groups of ops to place, or clusters of them where there are more.")
        .integer("tasks", &Options::tasks, 1, 1'000,
                 "For a step: ops that take time, or clusters of ops where there are more.");
  }
  explicit Ip(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

// What is left of the budget, for the solver: a node counts as an evaluation.
class Allowance {
 public:
  Allowance(PlaceContext& context, const Budget& budget) : context_(context), budget_(budget) {}

  bool spent() const { return budget_.spent(context_.evaluations()); }
  template <class Limits>
  void apply(Limits& limits) const {
    if (budget_.evaluations) {
      limits.nodes = std::max<std::int64_t>(0, *budget_.evaluations - context_.evaluations());
    }
    if (budget_.seconds) {
      limits.seconds = std::max(0.0, *budget_.seconds - budget_.elapsed_seconds());
    }
    limits.stop = [this](std::int64_t nodes) {
      return budget_.spent(context_.evaluations() + nodes) || context_.incumbent().optimal();
    };
    limits.stop_inside = [this] {
      return budget_.cancelled != nullptr && budget_.cancelled->load();
    };
  }

 private:
  PlaceContext& context_;
  const Budget& budget_;
};

std::vector<DeviceId> groups_of(const Problem& problem, const Placement& placement) {
  std::vector<DeviceId> result;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    result.push_back(placement[problem.group_ops(group).front()]);
  }
  return result;
}

// Tells the incumbent, and whether it fits.
bool offer(PlaceContext& context, Placement placement, Schedule schedule = {}) {
  const Evaluation value = context.evaluator().evaluate(placement, schedule);
  context.incumbent().offer({std::move(placement), std::move(schedule), value, "ip"});
  return value.fits();
}

const Solution* best_start(const PlaceContext& context) {
  const auto& starts = context.starts();
  if (starts.empty()) return nullptr;
  return &*std::min_element(starts.begin(), starts.end(),
                            [](const Solution& a, const Solution& b) { return a.value < b.value; });
}

// Valid, and offered.
std::vector<DeviceId> start_stream(const StreamModel& model, const StreamLevel& level,
                                   PlaceContext& context, Rng& rng) {
  const Problem& problem = model.problem();
  if (const Solution* start = best_start(context)) {
    context.incumbent().offer(*start);
    return groups_of(problem, start->placement);
  }
  const std::vector<DeviceId> devices = mutually_linked_devices(problem);
  std::vector<bool> usable(problem.num_devices(), false);
  for (const DeviceId device : devices) usable[device] = true;
  std::vector<DeviceId> best = fill_devices(level, usable, rng);
  std::vector<DeviceId> split = split_order(model, random_linear_order(model, rng), devices);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (!usable[split[group]] || !problem.allowed(group, split[group])) split[group] = best[group];
  }
  const StreamState filled(level, best);
  const StreamState cut(level, split);
  const auto value = [](const StreamState& state) {
    return Evaluation{.step = state.period(), .overflow = state.overflow()};
  };
  if (value(cut) < value(filled)) best = std::move(split);
  offer(context, expand_groups(problem, best));
  return best;
}

constexpr const char* kSolved = "the integer program was solved to the end";

std::string clusters_note(std::size_t clusters) {
  return fmt::format("{} clusters of ops were placed, so that nothing is proven of the model",
                     clusters);
}

// `bounds`: no placement that fits is left out by what the model's items hold.
std::vector<std::string> solve_loads(const StreamModel& model, PlaceContext& context,
                                     const Allowance& allowance, std::uint32_t items, bool bounds,
                                     Rng rng) {
  const Problem& problem = model.problem();
  const StreamLevel finest(model);
  const std::vector<DeviceId> start = start_stream(model, finest, context, rng);
  if (allowance.spent() || problem.num_groups() == 0) return {};
  // What the start has apart is not merged, so that the program can begin from it.
  const bool exact = finest.num_items() <= items;
  const StreamHierarchy hierarchy(
      finest, exact ? finest.num_items() : items,
      exact ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>(start.begin(), start.end()),
      rng, [&](std::int64_t) { return allowance.spent(); });
  const std::size_t coarsest = exact ? 0 : hierarchy.num_levels() - 1;
  const StreamLevel& level = hierarchy.level(coarsest);
  std::vector<std::string> notes;
  if (!exact) notes.push_back(clusters_note(level.num_items()));
  const std::size_t size = static_cast<std::size_t>(level.num_items()) + level.num_nets();
  if (size * problem.num_devices() > kMostColumns) return {kTooLarge};
  const AssignmentProgram program(level, exact ? start : hierarchy.coarsen(start));
  if (program.num_columns() > kMostColumns) return {kTooLarge};
  AssignmentProgram::Limits limits;
  allowance.apply(limits);
  limits.on_solution = [&](std::vector<DeviceId> device_of) {
    for (std::size_t depth = coarsest; depth > 0; --depth) {
      device_of = hierarchy.refine(depth, device_of);
    }
    Placement placement = expand_groups(problem, device_of);
    check_placement(problem, placement);
    offer(context, std::move(placement));
  };
  const AssignmentProgram::Result result = program.solve(limits);
  context.evaluator().count(result.nodes);
  if (exact && bounds) {
    context.incumbent().raise({result.lower_bound, "integer program"});
    if (result.finished) notes.emplace_back(kSolved);
  }
  return notes;
}

// Where a stream is simulated, what it holds for a while counts nothing at first. With an estimate
// of that more will fit.
std::vector<std::string> solve_stream(const Problem& problem, PlaceContext& context,
                                      const StreamPeriod& objective, const Allowance& allowance,
                                      std::uint32_t items, Rng rng) {
  if (!stream_is_simulated(problem, objective.overlap)) {
    return solve_loads(StreamModel(problem, objective.overlap), context, allowance, items, true,
                       rng);
  }
  const StreamModel estimated = estimated_model(context, problem.num_devices());
  start_stream(estimated, StreamLevel(estimated), context, rng);
  std::vector<std::string> notes =
      solve_loads(resident_model(problem), context, allowance, items, true, rng);
  std::erase(notes, kSolved);  // which says nothing of what is held for a while
  if (context.incumbent().optimal() || allowance.spent()) return notes;
  solve_loads(estimated, context, allowance, items, false, rng);
  return notes;
}

// Everything on one device, or the earliest task first, whichever is better. Offered.
std::vector<DeviceId> start_step(const Problem& problem, PlaceContext& context,
                                 const Budget& budget) {
  if (const Solution* start = best_start(context)) {
    context.incumbent().offer(*start);
    return groups_of(problem, start->placement);
  }
  PlaceResult listed = place_by_list(
      problem, context.evaluator(), budget, {}, false,
      [](ListSchedule& schedule) { return EarliestTaskFirst(schedule, nullptr).run(); });
  offer(context, std::move(listed.placement));
  const std::vector<DeviceId> devices = mutually_linked_devices(problem);
  const DeviceChoices choices(problem, devices);
  std::optional<DeviceId> fastest;
  const std::vector<double> totals = total_durations(problem);
  for (const DeviceId device : devices) {
    if (!fastest || totals[device] < totals[*fastest]) fastest = device;
  }
  std::vector<DeviceId> together(problem.num_groups(), *fastest);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (problem.allowed(group, *fastest)) continue;
    together[group] = fastest_for(problem, group, choices.of(group));
  }
  offer(context, expand_groups(problem, together));
  return groups_of(problem, context.incumbent().best()->placement);
}

class StepSolver {
 public:
  StepSolver(const Problem& problem, PlaceContext& context, const Allowance& allowance,
             StepTasks step)
      : problem_(problem), context_(context), allowance_(allowance), step_(std::move(step)) {}

  bool too_large() const {
    const std::size_t pairs =
        static_cast<std::size_t>(problem_.num_devices()) * problem_.num_devices();
    return step_.tasks.edges.size() * pairs > kMostLengths;
  }

  // Whether the program was solved to the end. `bounds`: what it proves holds for the problem.
  bool solve(std::vector<DeviceId> device_of_group, bool bounds) {
    std::vector<DeviceId> start(step_.tasks.num_units(), kNoDevice);
    for (GroupId group = 0; group < problem_.num_groups(); ++group) {
      DeviceId& device = start[step_.unit_of_group[group]];
      const auto& allowed = step_.tasks.allowed[step_.unit_of_group[group]];
      if (device != kNoDevice) continue;
      device = device_of_group[group];
      if (std::find(allowed.begin(), allowed.end(), device) == allowed.end()) device = allowed[0];
    }
    const auto known = context_.incumbent().value();
    const Nanoseconds upper = known->fits() ? known->step : problem_.horizon();
    const ScheduleProgram program(step_.tasks, std::move(start), upper);
    if (program.num_columns() > kMostColumns) return false;
    ScheduleProgram::Limits limits;
    allowance_.apply(limits);
    limits.on_solution = [&](const ScheduleProgram::Schedule& schedule) { look_at(schedule); };
    const ScheduleProgram::Result result = program.solve(limits);
    context_.evaluator().count(result.nodes);
    if (bounds && step_.exact) {
      context_.incumbent().raise({result.lower_bound, "integer program"});
    }
    return result.finished;
  }

  void set_memory(const MemoryLedger& ledger) {
    std::fill(step_.tasks.memory.begin(), step_.tasks.memory.end(), 0);
    for (GroupId group = 0; group < problem_.num_groups(); ++group) {
      step_.tasks.memory[step_.unit_of_group[group]] += ledger.need(group);
    }
  }
  bool overflowed() const { return overflowed_; }
  bool exact() const { return step_.exact; }
  std::size_t num_units() const { return step_.tasks.num_units(); }

 private:
  // In the order of arrival, and in the order that the program found.
  void look_at(const ScheduleProgram::Schedule& schedule) {
    std::vector<DeviceId> device_of(problem_.num_groups());
    for (GroupId group = 0; group < problem_.num_groups(); ++group) {
      device_of[group] = schedule.device_of[step_.unit_of_group[group]];
      if (!problem_.allowed(group, device_of[group])) {
        device_of[group] = problem_.allowed_devices(group).front();
      }
    }
    const Placement placement = expand_groups(problem_, device_of);
    try {
      check_placement(problem_, placement);
    } catch (const Error&) {
      return;  // a group that could not follow its cluster is where no link leads
    }
    std::vector<std::uint32_t> order(schedule.start.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return schedule.start[a] < schedule.start[b];
    });
    std::vector<std::int64_t> rank(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = -static_cast<std::int64_t>(i);
    Schedule own;
    for (const std::uint32_t task : step_.task_of_op) own.priorities.push_back(rank[task]);
    const bool fits = offer(context_, placement);
    const bool fits_in_order = offer(context_, placement, std::move(own));
    overflowed_ = overflowed_ || !fits || !fits_in_order;
  }

  const Problem& problem_;
  PlaceContext& context_;
  const Allowance& allowance_;
  StepTasks step_;
  bool overflowed_ = false;
};

std::vector<std::string> solve_step(const Problem& problem, PlaceContext& context,
                                    const Budget& budget, const Allowance& allowance,
                                    std::uint32_t most) {
  const std::vector<DeviceId> start = start_step(problem, context, budget);
  if (allowance.spent() || problem.num_ops() == 0) return {};
  if (problem.num_devices() > kMostStepDevices) return {kTooLarge};
  std::uint32_t timed = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) timed += problem.mean_duration(op) > 0 ? 1 : 0;
  const bool exact = timed <= most && problem.num_ops() <= kMostOpsPerTimed * most;
  StepSolver solver(problem, context, allowance,
                    exact ? tasks_of_ops(problem) : tasks_of_clusters(problem, most));
  if (solver.too_large()) return {kTooLarge};
  std::vector<std::string> notes;
  if (!exact) notes.push_back(clusters_note(solver.num_units()));
  const bool finished = solver.solve(start, true);
  if (exact && finished) notes.emplace_back(kSolved);
  // What ops hold for a while counts nothing so far. With an estimate of it more will fit.
  if (solver.overflowed() && !allowance.spent()) {
    const MemoryModel model(problem, context.evaluator());
    solver.set_memory(MemoryLedger(problem, model, 1));
    solver.solve(start, false);
  }
  return notes;
}

PlaceResult Ip::place(PlaceContext& context, const Budget& budget, Rng rng) {
  const Problem& problem = context.problem();
  const Budget limited = budget.or_default();
  const Allowance allowance(context, limited);
  const auto items = static_cast<std::uint32_t>(options_.items);
  const auto tasks = static_cast<std::uint32_t>(options_.tasks);
  std::vector<std::string> notes = context.objective().match(
      [&](const StepTime&) { return solve_step(problem, context, limited, allowance, tasks); },
      [&](const StreamPeriod& stream) {
        return solve_stream(problem, context, stream, allowance, items, rng);
      });
  const Solution best = *context.incumbent().best();
  PlaceResult result{
      .placement = best.placement, .schedule = best.schedule, .notes = std::move(notes)};
  if (!best.value.fits()) note_shortage(problem, context.evaluator(), result);
  return result;
}

}  // namespace

EMPLACE_PLACER(ip, Ip, .family = "exact",
               .summary = "An integer program, solved by branch and cut, with a proven bound.",
               .reference = "Tarnawski et al., NeurIPS 2020", .randomized = true)

}  // namespace emplace
