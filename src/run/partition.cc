#include "run/partition.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "base/fingerprint.h"
#include "base/read_bytes.h"

#include "cost/problem_fingerprint.h"

#include "tensor/methods/all.h"
#include "tensor/movers.h"
#include "tensor/prepare.h"
#include "tensor/step_bound.h"

#include "io/collectives_file.h"
#include "run/partition_ranks.h"
#include "run/plan_copies.h"
#include "run/shared_job.h"
#include "run/single_device.h"
#include "run/whole_ways.h"

namespace emplace {
namespace {

// How long the search for a placement of whole ops may take, of the time for everything, after that
// for a partition.
constexpr double kPlacementShare = 0.25;
constexpr double kLongestPlacement = 10;
// Under a limit of evaluations, so that the answer does not follow the clock.
constexpr std::int64_t kPlacementsPerPlan = 20;
// How long the search for a partition may, of what that leaves; comparing has the rest, but for
// what is kept for the bound, of the whole time.
constexpr double kSearchShare = 0.85;
constexpr double kBoundShare = 0.05;
// Of the time to search, for one machine where the first plan is better there.
constexpr double kMachineShare = 0.6;
// And for what quick methods make of that machine, before anything else is searched.
constexpr double kQuickShare = 0.15;

void check(const Problem& problem) {
  if (!problem.compile_options().rules.empty()) {
    fail_option(
        "pins and what is forbidden are for whole ops; a partition gives every device a part");
  }
  if (problem.compile_options().fuse) {
    fail_option("fusion is for whole ops; partitions are found for the ops as they are");
  }
}

std::shared_ptr<const CollectiveTimes> collectives_of(const PartitionOptions& options) {
  if (options.collectives.empty()) return nullptr;
  return std::make_shared<const CollectiveTimes>(read_collectives_file(options.collectives));
}

// All of it in the time that there is, as far as that can be: some plan there must be.
class PartitionFinder {
 public:
  // `crew`: whom the search is shared with, or nobody.
  PartitionFinder(const std::shared_ptr<const Problem>& problem, const PartitionOptions& options,
                  std::function<void(const std::string&)> on_phase, dist::Crew* crew = nullptr)
      : options_(options),
        crew_(crew),
        clock_(options.budget.or_default(kPartitionSeconds).restarted()),
        on_phase_(std::move(on_phase)),
        costs_{.mode = problem->compile_options().cost,
               .in_place = problem->compile_options().in_place,
               .overlap_slowdown = options.overlap_slowdown,
               .collectives = collectives_of(options)},
        cluster_(problem, &problem->cluster()) {
    answer_.whole = problem;
    answer_.graph = std::make_shared<const Graph>(prepare_to_divide(problem->graph()));
    divided_ = compile(answer_.graph, cluster_,
                       CompileOptions{.cost = costs_.mode, .in_place = costs_.in_place});
    answer_.on = workers_on(*divided_, options.workers);
    if (answer_.workers().count() < 2) {
      fail_option("the cluster '{}' has one device; expected two or more to divide tensors among",
                  cluster_->name());
    }
    answer_.input = std::make_shared<const PartitionInput>(*answer_.graph);
    answer_.collectives_measured = costs_.collectives != nullptr;
  }

  PartitionAnswer find() {
    const MethodSpec spec = MethodSpec::parse(options_.method);
    const auto method = all_partition_methods().make(spec);
    if (crew_ != nullptr) crew_->expect(input_fingerprint());
    find_one_device();
    tell("searching for a partition");
    answer_.method = spec.to_string();
    PartitionContext context(*answer_.input, divided_, *answer_.on, costs_);
    answer_.course.run = {.placer = spec, .seed = options_.seed};
    const Budget began = clock_.restarted();
    const auto listening = context.incumbent().listen([&](const auto& incumbent) {
      answer_.course.points.push_back(
          {began.elapsed_seconds(), context.evaluations(), incumbent.value()});
    });
    std::optional<PlacedBeside> placing;
    if (places_beside()) {
      placing.emplace(answer_.whole, time_to_place(), costs_.overlap_slowdown);
    }
    find_on_one_machine(context, spec, *method);
    answer_.plan = num_parts() > 1 ? find_in_parts(*method, context)
                                   : method->find(context, time_to_search(), Rng(options_.seed));
    if (crew_ != nullptr) crew_->check();
    take_outcome(context);
    // Another rank's plan may be better than the course's own.
    if (context.evaluations() > 0) {
      answer_.course.points.push_back(
          {began.elapsed_seconds(), context.evaluations(), answer_.outcome.value});
    }
    if (!placing) {
      tell("placing whole ops");
      answer_.placed = placed_way(answer_.whole, time_to_place(), costs_.overlap_slowdown);
    }
    tell("comparing");
    compare(context, spec.key);
    find_one_of_alike();
    find_on_fewer();
    // The rest, as far as there is time.
    std::erase_if(answer_.not_compared, [&](const std::string& other) {
      return compare_with(other, spec.key == "search");
    });
    if (answer_.fewer_left_out) answer_.not_compared.emplace_back("fewer devices");
    if (placing) answer_.placed = placing->take();
    const Budget left = time_left();
    answer_.bound = divided_step_bound(*answer_.input, *divided_, *answer_.on, costs_, &left);
    UndividedTypes undivided = undivided_types(*answer_.input);
    answer_.undivided = std::move(undivided.undescribed);
    answer_.unattributed = std::move(undivided.unattributed);
    answer_.terms.work = work_of(answer_.whole->graph());
    return std::move(answer_);
  }

  // On a rank that is not the first.
  void serve(dist::Member& member) {
    const auto method = all_partition_methods().make(MethodSpec::parse(options_.method));
    member.serve(input_fingerprint(), [&](dist::Reader& task, dist::Line& line) {
      const auto part = static_cast<std::size_t>(task.number<std::uint64_t>());
      Budget budget;
      budget.threads = options_.budget.threads;
      budget.cancelled = &line.stopped();
      const auto seconds = task.number<double>();
      const auto evaluations = task.number<std::int64_t>();
      task.end();
      if (seconds >= 0) budget.seconds = seconds;
      if (evaluations >= 0) budget.evaluations = evaluations;
      PartitionContext context(*answer_.input, divided_, *answer_.on, costs_);
      return plan_bytes(method->find(context, budget, rng_of_part(part)));
    });
  }

  // The better of the methods that are quick, on all devices or on fewer; nothing where no op is
  // described.
  std::optional<WayToRun> quick() {
    if (!any_described()) return std::nullopt;
    auto best = quick_on(*answer_.on, time_left());
    if (!best) return best;
    answer_.chosen = *best;
    find_on_fewer();
    return answer_.on_fewer ? answer_.on_fewer : best;
  }

 private:
  void tell(const std::string& phase) const {
    if (on_phase_) on_phase_(phase);
  }
  bool cancelled() const {
    return options_.budget.cancelled != nullptr && options_.budget.cancelled->load();
  }

  // The first part's are those of one process.
  Rng rng_of_part(std::size_t part) const {
    return part == 0 ? Rng(options_.seed) : Rng(options_.seed).split(part);
  }
  std::uint64_t input_fingerprint() const {
    Fingerprint all;
    add_problem(all, *divided_);
    all.add(answer_.workers().count());
    all.add(MethodSpec::parse(options_.method).to_string()).add(options_.seed);
    all.add(static_cast<std::uint64_t>(costs_.mode));
    all.add(static_cast<std::uint64_t>(costs_.in_place));
    all.add(std::bit_cast<std::uint64_t>(costs_.overlap_slowdown));
    if (!options_.collectives.empty()) all.add(read_bytes(options_.collectives));
    return all.value();
  }

  std::size_t num_parts() const {
    if (options_.islands > 0 && options_.budget.evaluations) {
      if (options_.islands > *options_.budget.evaluations) {
        fail_input("{} islands share {} evaluations; expected one for each or more",
                   options_.islands, *options_.budget.evaluations);
      }
      return static_cast<std::size_t>(options_.islands);
    }
    return crew_ != nullptr ? static_cast<std::size_t>(crew_->size()) : 1;
  }

  // A search on every rank; under an evaluation budget, as many as there are islands, wherever.
  Plan find_in_parts(PartitionMethod& method, PartitionContext& context) {
    const std::size_t parts = num_parts();
    std::vector<std::optional<Plan>> found(parts);
    std::optional<Error> failure;
    const Budget whole = time_to_search();
    const auto budget_of_part = [&](std::size_t part) {
      Budget budget = whole.restarted();
      if (whole.seconds) {
        const double left = std::max(0.0, *whole.seconds - whole.elapsed_seconds());
        budget.seconds =
            options_.budget.evaluations ? seconds_of_task(left, part, parts, crew_) : left;
      }
      if (budget.evaluations) {
        *budget.evaluations =
            std::max<std::int64_t>(1, *budget.evaluations / static_cast<std::int64_t>(parts));
      }
      return budget;
    };
    dist::Job job;
    job.tasks = parts;
    job.one_each = !options_.budget.evaluations;
    job.cancelled = options_.budget.cancelled;
    job.describe = [&](std::size_t part) {
      const Budget budget = budget_of_part(part);
      return dist::Writer()
          .number<std::uint64_t>(part)
          .number(budget.seconds.value_or(-1))
          .number(budget.evaluations.value_or(-1))
          .take();
    };
    job.here = [&](std::size_t part) {
      PartitionContext own(*answer_.input, divided_, *answer_.on, costs_);
      // What this rank tries is what the methods are compared by.
      PartitionContext& used = part == 0 ? context : own;
      return plan_bytes(method.find(used, budget_of_part(part), rng_of_part(part)));
    };
    job.accept = [&](std::size_t part, dist::Reader& reader) {
      found[part] = take_plan(reader, *answer_.input, answer_.workers());
    };
    job.failed = [&](std::size_t part, const Error& error) {
      if (part == 0) failure = error;
    };
    run_job(crew_, job);
    if (failure) throw *failure;
    // Not by the search's own context, whose evaluations its budget counts.
    PartitionContext judge(*answer_.input, divided_, *answer_.on, costs_);
    std::optional<PlanSolution> best;
    for (std::optional<Plan>& each : found) {
      if (!each) continue;
      PlanSolution solution = judge.evaluate(std::move(*each));
      if (!best || solution.value < best->value) best = std::move(solution);
    }
    EMPLACE_CHECK(best.has_value());
    return std::move(best->plan);
  }

  bool any_described() const {
    for (OpId op = 0; op < answer_.graph->num_ops(); ++op) {
      if (!answer_.graph->is_source(op) && answer_.input->descriptions[op] != nullptr) return true;
    }
    return false;
  }

  // This share of what is left of the time.
  Budget time_left(double share = 1) const {
    Budget left = clock_.restarted();
    if (left.seconds) {
      left.seconds = std::max(0.0, *clock_.seconds - clock_.elapsed_seconds()) * share;
    }
    return left;
  }
  // A single plan may take longer than that where devices are many; so it comes first, and the
  // placement has what is left.
  Budget time_to_search(double share = 1) const {
    return time_left((places_beside() ? 1 : 1 - kPlacementShare) * kSearchShare * share);
  }
  bool has_time_for(double seconds) const {
    if (cancelled() || !clock_.seconds) return !cancelled();
    return *time_left().seconds >= seconds + kBoundShare * *clock_.seconds;
  }

  // Machines that do the same, as links between them are slow.
  int groups_alike(const Plan& plan, const WorkerDevices& on) const {
    const std::size_t between = levels_between_machines(*cluster_, on);
    return static_cast<int>(
        plan.workers.first(repeating_levels(*answer_.input, plan, between)).count());
  }

  WayToRun way_of(std::string name, const PlanOutcome& outcome, const Plan& plan,
                  const WorkerDevices& on) const {
    return {.name = std::move(name),
            .step = outcome.value.step,
            .peaks = outcome.peaks,
            .moved = outcome.moved,
            .fits = outcome.value.fits(),
            .copies = mean_copies(*answer_.input, *divided_, plan, on.devices[0]),
            .alike = groups_alike(plan, on),
            .added_cost = plan.added_cost,
            .unmeasured = outcome.unmeasured};
  }

  // Searches have evaluated their answer already.
  void take_outcome(PartitionContext& context) {
    for (PartitionContext::Tried& tried : context.tried()) {
      if (tried.outcome.problem != nullptr && tried.plan.tensors == answer_.plan.tensors &&
          tried.plan.ops == answer_.plan.ops && tried.plan.held == answer_.plan.held) {
        answer_.outcome = std::move(tried.outcome);
      }
    }
    if (answer_.outcome.problem == nullptr) answer_.outcome = outcome_of(context, answer_.plan);
    answer_.chosen = way_of(answer_.method, answer_.outcome, answer_.plan, *answer_.on);
  }

  PlanOutcome outcome_of(PartitionContext& context, const Plan& plan) {
    const Budget clock;
    PlanOutcome outcome = evaluate_plan(*answer_.input, plan, cluster_, context.devices(), costs_);
    evaluation_seconds_ = std::max(evaluation_seconds_, clock.elapsed_seconds());
    return outcome;
  }

  // What the other methods make of it: what a search saw of them.
  void compare(const PartitionContext& context, const std::string& chosen) {
    evaluation_seconds_ = std::max(evaluation_seconds_, context.evaluation_seconds());
    const std::vector<PartitionContext::Tried> tried = context.tried();
    for (const MethodInfo* other : all_partition_methods().list()) {
      if (other->key == "search" || other->key == chosen) continue;
      const auto found = std::find_if(tried.begin(), tried.end(),
                                      [&](const auto& each) { return each.method == other->key; });
      if (found != tried.end()) {
        answer_.others.push_back(way_of(other->key, found->outcome, found->plan, *answer_.on));
      } else if (data_parallel_ && other->key == data_parallel_->name) {
        answer_.others.push_back(*data_parallel_);
      } else {
        answer_.not_compared.push_back(other->key);
      }
    }
  }

  // Whether there was time for it.
  bool compare_with(const std::string& key, bool may_replace) {
    if (!has_time_for(evaluation_seconds_)) return false;
    try {
      PartitionContext context(*answer_.input, divided_, *answer_.on, costs_);
      context.set_limit(time_left());
      Plan plan =
          all_partition_methods().make({key, {}})->find(context, time_left(), Rng(options_.seed));
      if (!has_time_for(evaluation_seconds_)) return false;
      PlanOutcome outcome = outcome_of(context, plan);
      answer_.others.push_back(way_of(key, outcome, plan, *answer_.on));
      // A short search may end above what others find at once.
      if (may_replace && outcome.value < answer_.outcome.value) {
        answer_.chosen = way_of(answer_.method, outcome, plan, *answer_.on);
        answer_.plan = std::move(plan);
        answer_.outcome = std::move(outcome);
      }
      return true;
    } catch (const OutOfTime&) {
      return false;
    } catch (const TooManyPieces&) {
      answer_.too_large.push_back(key);
    } catch (const Error& error) {
      answer_.failed.emplace_back(key, error.what());
    }
    return true;
  }

  // The better of the methods that are quick; the first is the quickest, and always done, the other
  // if it is planned before the limit.
  std::optional<WayToRun> quick_on(const WorkerDevices& on, const Budget& limit) {
    const double seconds = seconds_on(on.workers.count());
    std::optional<WayToRun> best;
    for (const char* key : {"data-parallel", "tofu"}) {
      if (best && !has_time_for(seconds)) break;
      try {
        PartitionContext context(*answer_.input, divided_, on, costs_);
        if (best) context.set_limit(limit);
        const Plan plan =
            all_partition_methods().make({key, {}})->find(context, limit, Rng(options_.seed));
        if (best && !has_time_for(seconds)) break;
        const WayToRun way = way_of(key, outcome_of(context, plan), plan, on);
        if (!best || is_better(way, *best)) best = way;
      } catch (const OutOfTime&) {
        cut_short_ = true;
        break;
      } catch (const TooManyPieces&) {
        break;
      }
    }
    return best;
  }

  // An evaluation for so many workers, as far as that is known.
  double seconds_on(Worker count) const {
    return evaluation_seconds_ * static_cast<double>(count) / answer_.workers().count();
  }
  static std::string name_on(const std::string& name, std::size_t count) {
    return fmt::format("{} on {} devices", name, count);
  }

  // Where links between machines are slow, one may do better alone, and be searched many times as
  // fast: so that is looked at after the first plan for all.
  void find_on_one_machine(PartitionContext& searched, const MethodSpec& spec,
                           PartitionMethod& method) {
    const std::size_t between = levels_between_machines(*cluster_, *answer_.on);
    if (options_.workers != 0 || between == 0 || !has_time_for(0)) return;
    const auto machines = answer_.workers().first(between).count();
    machine_size_ = answer_.workers().count() / machines;
    if (machine_size_ < 2) return;
    const auto first = all_partition_methods().make({"data-parallel", {}});
    // A search begins with that plan; it belongs in the course of no other method.
    PartitionContext own(*answer_.input, divided_, *answer_.on, costs_);
    PartitionContext& context = spec.key == "search" ? searched : own;
    const Plan plan = first->find(context, time_left(), Rng(options_.seed));
    context.try_plan(plan);
    const WayToRun on_all = way_of(plan.method, context.tried().back().outcome, plan, *answer_.on);
    if (&context == &own) data_parallel_ = on_all;
    evaluation_seconds_ = context.evaluation_seconds();
    if (!has_time_for(2 * seconds_on(machine_size_))) return;
    const WorkerDevices machine = workers_on(*divided_, static_cast<int>(machine_size_));
    auto way = quick_on(machine, time_to_search(kQuickShare));
    machine_tried_ = way.has_value();
    if (!way || !is_better(*way, on_all)) return;
    way->name = name_on(way->name, machine_size_);
    answer_.on_fewer = std::move(way);
    if (spec.key == "search") search_on(machine, spec, method);
  }

  void search_on(const WorkerDevices& on, const MethodSpec& spec, PartitionMethod& method) {
    const Budget budget = time_to_search(kMachineShare);
    if (budget.seconds && *budget.seconds < 2 * seconds_on(on.workers.count())) return;
    PartitionContext context(*answer_.input, divided_, on, costs_);
    const Plan plan = method.find(context, budget, Rng(options_.seed));
    for (const PartitionContext::Tried& tried : context.tried()) {
      if (tried.plan.tensors != plan.tensors || tried.plan.ops != plan.ops ||
          tried.plan.held != plan.held) {
        continue;
      }
      WayToRun way = way_of(name_on(spec.key, on.devices.size()), tried.outcome, plan, on);
      if (is_better(way, *answer_.on_fewer)) answer_.on_fewer = std::move(way);
      return;
    }
  }

  // What quick methods make of half of the devices, a quarter and so on, as long as that is better:
  // slow links may be done without, and small parts.
  void find_on_fewer() {
    if (options_.workers != 0) return;
    WayToRun best = answer_.best_in_parts();
    bool tried = machine_tried_ || answer_.on_fewer.has_value();
    for (std::size_t count = answer_.devices().size() / 2; count >= 2; count /= 2) {
      if (machine_tried_ && !cut_short_ && count == machine_size_) continue;
      // Planning takes about as long as evaluating.
      if (!has_time_for(2 * seconds_on(static_cast<Worker>(count)))) {
        answer_.fewer_left_out = !tried;
        break;
      }
      tried = true;
      auto way = quick_on(workers_on(*divided_, static_cast<int>(count)), time_left());
      const bool better = way && !is_better(best, *way);  // as fast on fewer is better
      if (!better && machine_tried_ && count >= machine_size_) continue;
      if (!better) break;
      way->name = name_on(way->name, count);
      best = *way;
      answer_.on_fewer = std::move(way);
    }
  }

  // Where all machines do the same, what one does.
  void find_one_of_alike() {
    if (options_.workers != 0 || answer_.chosen.alike < 2) return;
    const std::size_t size =
        answer_.devices().size() / static_cast<std::size_t>(answer_.chosen.alike);
    const std::size_t levels = repeating_levels(*answer_.input, answer_.plan,
                                                levels_between_machines(*cluster_, *answer_.on));
    if (size < 2 || !has_time_for(seconds_on(static_cast<Worker>(size)))) return;
    const WorkerDevices one = workers_on(*divided_, static_cast<int>(size));
    if (one.workers.levels() + levels != answer_.workers().levels()) return;
    const Plan plan = plan_of_one_group(answer_.plan, levels, one.workers);
    try {
      PartitionContext context(*answer_.input, divided_, one, costs_);
      WayToRun way = way_of(name_on(answer_.method, size), outcome_of(context, plan), plan, one);
      if (!is_better(answer_.best_in_parts(), way)) answer_.on_fewer = std::move(way);
    } catch (const Error&) {
      return;  // machines are not equal
    }
  }

  // The whole model on the best of the workers' devices.
  void find_one_device() {
    tell("simulating one device");
    PlaceContext context(std::make_shared<const Simulator>(answer_.whole));
    const SingleDevices singles = try_single_devices(context.evaluator(), answer_.devices());
    const auto& best = singles.fitting ? singles.fitting : singles.fastest;
    if (best) {
      answer_.one_device_name = cluster_->device(best->device).name;
      answer_.one_device = undivided_way(
          answer_.whole, fmt::format("one device ({})", answer_.one_device_name),
          Placement(answer_.whole->num_ops(), best->device), {}, costs_.overlap_slowdown);
    }
  }

  // The search for a partition has one thread. Under a limit of evaluations time does not matter.
  bool places_beside() const { return options_.budget.threads > 1 && !options_.budget.evaluations; }

  // Op by op.
  Budget time_to_place() const {
    Budget budget = time_left();
    if (places_beside()) --budget.threads;
    if (budget.seconds) {
      budget.seconds =
          std::min({kLongestPlacement, *budget.seconds, kPlacementShare * *clock_.seconds});
    }
    if (budget.evaluations) *budget.evaluations *= kPlacementsPerPlan;
    return budget;
  }

  const PartitionOptions& options_;
  dist::Crew* crew_;
  Budget clock_;  // runs from the beginning
  std::function<void(const std::string&)> on_phase_;
  PlanCosts costs_;
  std::shared_ptr<const Cluster> cluster_;
  std::shared_ptr<const Problem> divided_;  // the operators that are divided, still whole
  double evaluation_seconds_ = 0;           // of the slowest plan
  Worker machine_size_ = 0;                 // where some links are slower
  bool machine_tried_ = false;
  bool cut_short_ = false;                 // of the quick methods, the other one was
  std::optional<WayToRun> data_parallel_;  // on all, where no search has it
  PartitionAnswer answer_;
};

}  // namespace

const WayToRun& PartitionAnswer::best_on_all() const {
  const WayToRun* best = &chosen;
  for (const WayToRun& way : others) {
    if (is_better(way, *best)) best = &way;
  }
  return *best;
}

const WayToRun& PartitionAnswer::best_in_parts() const {
  const WayToRun& best = best_on_all();
  return on_fewer && !is_better(best, *on_fewer) ? *on_fewer : best;
}

std::optional<WayToRun> quick_partition(const std::shared_ptr<const Problem>& problem,
                                        const Budget& budget) {
  // A piece of each op for each worker is planned and simulated, in so many seconds.
  constexpr double kSecondsPerPiece = 90e-6;
  const double pieces = static_cast<double>(problem->num_ops()) * problem->num_devices();
  const CompileOptions& compiled = problem->compile_options();
  if (problem->num_devices() < 2 || !compiled.rules.empty() || compiled.fuse ||
      !compiled.sources.empty() ||
      pieces * kSecondsPerPiece > budget.seconds.value_or(kPartitionSeconds)) {
    return std::nullopt;
  }
  try {
    PartitionOptions options;
    options.budget = budget.restarted();
    return PartitionFinder(problem, options, {}).quick();
  } catch (const Error&) {
    return std::nullopt;  // not this model, or not on this cluster, which is no news here
  }
}

Rates rates_of(const WayToRun& way, const StepTerms& terms, const Cluster& cluster) {
  std::vector<DeviceId> used;
  for (DeviceId id = 0; id < way.peaks.size(); ++id) {
    if (way.peaks[id] > 0) used.push_back(id);
  }
  return rates_of(terms, cluster, used, way.step);
}

PartitionAnswer find_partition(const std::shared_ptr<const Problem>& problem,
                               const PartitionOptions& options,
                               const std::function<void(const std::string&)>& on_phase) {
  check(*problem);
  return PartitionFinder(problem, options, on_phase).find();
}

PartitionAnswer find_partition_on_ranks(const std::shared_ptr<const Problem>& problem,
                                        const PartitionOptions& options,
                                        const std::function<void(const std::string&)>& on_phase,
                                        dist::Crew& crew) {
  check(*problem);
  return PartitionFinder(problem, options, on_phase, &crew).find();
}

void serve_partition(const std::shared_ptr<const Problem>& problem, const PartitionOptions& options,
                     dist::Member& member) {
  check(*problem);
  PartitionFinder(problem, options, {}).serve(member);
}

}  // namespace emplace
