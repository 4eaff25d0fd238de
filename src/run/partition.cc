#include "run/partition.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

#include "placer/run.h"

#include "placers/all.h"

#include "tensor/decompose.h"
#include "tensor/methods/all.h"

#include "run/cpu_use.h"
#include "run/single_device.h"

namespace emplace {
namespace {

// How long the search for a placement of whole ops may take, of the time for everything.
constexpr double kPlacementShare = 0.25;
constexpr double kLongestPlacement = 10;

void check(const Problem& problem) {
  if (!problem.compile_options().rules.empty()) {
    fail_option(
        "pins and what is forbidden are for whole ops; a partition gives every device a part");
  }
  if (problem.compile_options().fuse) {
    fail_option("fusion is for whole ops; partitions are found for the ops as they are");
  }
}

WayToRun simulate_whole(const Simulator& simulator, std::string name, const Placement& placement,
                        const Schedule& schedule) {
  const Timeline timeline = simulator.run(placement, schedule);
  WayToRun way{.name = std::move(name), .step = timeline.step, .peaks = {}};
  way.fits = timeline.fits();
  for (const DeviceUse& use : timeline.devices) way.peaks.push_back(use.peak);
  way.moved = timeline.transfer_bytes;
  return way;
}

WayToRun way_of(std::string name, const PlanOutcome& outcome) {
  return {.name = std::move(name),
          .step = outcome.value.step,
          .peaks = outcome.peaks,
          .moved = outcome.moved,
          .fits = outcome.value.fits()};
}

bool is_better(const WayToRun& way, const WayToRun& than) {
  return std::pair(!way.fits, way.step) < std::pair(!than.fits, than.step);
}

// Operators that everybody does whole for want of a description.
std::vector<std::string> undivided_operators(const Graph& graph, const PartitionInput& input) {
  std::vector<std::string> types;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_source(op) || input.descriptions[op] != nullptr) continue;
    std::string type(graph.type(op));
    if (std::find(types.begin(), types.end(), type) == types.end())
      types.push_back(std::move(type));
  }
  return types;
}

class PartitionFinder {
 public:
  PartitionFinder(const std::shared_ptr<const Problem>& problem, const PartitionOptions& options,
                  std::function<void(const std::string&)> on_phase)
      : options_(options),
        on_phase_(std::move(on_phase)),
        mode_(problem->compile_options().cost),
        cluster_(problem, &problem->cluster()) {
    answer_.whole = problem;
    answer_.graph = std::make_shared<const Graph>(decompose(problem->graph()));
    divided_ = compile(answer_.graph, cluster_, mode_);
    answer_.on = workers_on(*divided_, options.workers);
    if (answer_.workers().count() < 2) {
      fail_option("the cluster '{}' has one device; expected two or more to divide tensors among",
                  cluster_->name());
    }
    answer_.input = std::make_shared<const PartitionInput>(*answer_.graph);
  }

  PartitionAnswer find() {
    const MethodSpec spec = MethodSpec::parse(options_.method);
    const auto method = all_partition_methods().make(spec);
    find_alternatives();
    tell("searching for a partition");
    answer_.method = spec.to_string();
    answer_.plan = run(*method, time_left());
    answer_.outcome = outcome_of(answer_.plan);
    answer_.chosen = way_of(answer_.method, answer_.outcome);
    tell("comparing");
    for (const MethodInfo* other : all_partition_methods().list()) {
      if (other->key == "search" || other->key == spec.key || cancelled()) continue;
      Plan plan = run(*all_partition_methods().make({other->key, {}}), time_left());
      PlanOutcome outcome = outcome_of(plan);
      answer_.others.push_back(way_of(other->key, outcome));
      if (spec.key == "search") keep_better(std::move(plan), std::move(outcome));
    }
    answer_.undivided = undivided_operators(*answer_.graph, *answer_.input);
    answer_.terms.work = work_of(answer_.whole->graph());
    return std::move(answer_);
  }

  // The better of the methods that are quick; nothing where no op is described.
  std::optional<WayToRun> quick() {
    if (!any_described()) return std::nullopt;
    std::optional<WayToRun> best;
    for (const char* key : {"data-parallel", "tofu"}) {
      // A method that has begun is not stopped, and the first is the quickest.
      const double limit = options_.budget.seconds.value_or(kPartitionSeconds) / 2;
      if (cancelled() || (best && options_.budget.elapsed_seconds() > limit)) break;
      const Plan plan = run(*all_partition_methods().make({key, {}}), options_.budget);
      const WayToRun way = way_of(key, outcome_of(plan));
      if (!best || is_better(way, *best)) best = way;
    }
    return best;
  }

  const std::vector<DeviceId>& devices() const { return answer_.devices(); }

 private:
  // A short search may end above what others find at once.
  void keep_better(Plan plan, PlanOutcome outcome) {
    if (!(outcome.value < answer_.outcome.value)) return;
    answer_.chosen = way_of(answer_.method, outcome);
    answer_.plan = std::move(plan);
    answer_.outcome = std::move(outcome);
  }

  void tell(const std::string& phase) const {
    if (on_phase_) on_phase_(phase);
  }
  bool cancelled() const {
    return options_.budget.cancelled != nullptr && options_.budget.cancelled->load();
  }

  bool any_described() const {
    for (OpId op = 0; op < answer_.graph->num_ops(); ++op) {
      if (!answer_.graph->is_source(op) && answer_.input->descriptions[op] != nullptr) return true;
    }
    return false;
  }

  Plan run(PartitionMethod& method, const Budget& budget) const {
    PartitionContext context(*answer_.input, divided_, *answer_.on, mode_);
    return method.find(context, budget.restarted(), Rng(options_.seed));
  }
  // What the search for a placement of whole ops left.
  Budget time_left() const {
    Budget left = options_.budget.or_default(kPartitionSeconds);
    if (left.seconds) left.seconds = std::max(0.0, *left.seconds - placing_seconds_);
    return left;
  }
  PlanOutcome outcome_of(const Plan& plan) const {
    return evaluate_plan(*answer_.input, plan, cluster_, answer_.devices(), mode_);
  }

  // The whole model on the best of the workers' devices, and placed op by op.
  void find_alternatives() {
    tell("simulating one device");
    const auto simulator = std::make_shared<const Simulator>(answer_.whole);
    PlaceContext context(simulator);
    const SingleDevices singles = try_single_devices(context.evaluator(), answer_.devices());
    const auto& best = singles.fitting ? singles.fitting : singles.fastest;
    if (best) {
      answer_.one_device_name = cluster_->device(best->device).name;
      answer_.one_device =
          simulate_whole(*simulator, fmt::format("one device ({})", answer_.one_device_name),
                         Placement(answer_.whole->num_ops(), best->device), {});
    }
    tell("placing whole ops");
    Budget budget = options_.budget.restarted();
    budget.evaluations.reset();
    budget.seconds = std::min(
        kLongestPlacement, kPlacementShare * options_.budget.seconds.value_or(kPartitionSeconds));
    const auto accelerators = without_cpus(answer_.whole, StepTime{});
    const bool leave_cpus_out = accelerators && accelerators->fits;
    PlaceContext placing(leave_cpus_out ? std::make_shared<const Simulator>(accelerators->problem)
                                        : simulator);
    const RunResult placed =
        run_placer(all_placers(), placing, {.placer = MethodSpec::parse("auto")}, budget);
    placing_seconds_ = placed.seconds;
    answer_.placed =
        simulate_whole(*simulator, "placement (auto)",
                       leave_cpus_out ? to_whole(placed.result.placement, accelerators->devices)
                                      : placed.result.placement,
                       placed.result.schedule);
  }

  const PartitionOptions& options_;
  std::function<void(const std::string&)> on_phase_;
  CostMode mode_;
  std::shared_ptr<const Cluster> cluster_;
  std::shared_ptr<const Problem> divided_;  // the operators that are divided, still whole
  double placing_seconds_ = 0;
  PartitionAnswer answer_;
};

// As between and within machines.
bool links_differ(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  std::optional<std::int64_t> first;
  for (const DeviceId from : devices) {
    for (const DeviceId to : devices) {
      const Link* link = from == to ? nullptr : cluster.link(from, to);
      if (link == nullptr) continue;
      if (first && link->bandwidth != *first) return true;
      first = link->bandwidth;
    }
  }
  return false;
}

// What quick methods make of half of the devices, a quarter and so on, as long as that is better
// than `best`. Only where devices are not all linked alike: slow links may be done without.
std::optional<WayToRun> find_on_fewer(const std::shared_ptr<const Problem>& problem,
                                      const PartitionOptions& options,
                                      const std::vector<DeviceId>& devices, WayToRun best) {
  std::optional<WayToRun> found;
  if (options.workers != 0 || !links_differ(problem->cluster(), devices)) return found;
  PartitionOptions fewer = options;
  for (std::size_t count = devices.size() / 2; count >= 2; count /= 2) {
    fewer.workers = static_cast<int>(count);
    fewer.budget = options.budget.restarted();
    auto way = PartitionFinder(problem, fewer, {}).quick();
    if (!way || !is_better(*way, best)) break;
    way->name += fmt::format(" on {} devices", count);
    best = *way;
    found = std::move(way);
  }
  return found;
}

}  // namespace

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
    PartitionFinder finder(problem, options, {});
    const auto best = finder.quick();
    if (!best) return best;
    const auto fewer = find_on_fewer(problem, options, finder.devices(), *best);
    return fewer ? fewer : best;
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

int WayToRun::devices() const {
  return static_cast<int>(
      std::count_if(peaks.begin(), peaks.end(), [](Bytes peak) { return peak > 0; }));
}

Bytes WayToRun::largest_peak() const {
  return *std::max_element(peaks.begin(), peaks.end());
}

PartitionAnswer find_partition(const std::shared_ptr<const Problem>& problem,
                               const PartitionOptions& options,
                               const std::function<void(const std::string&)>& on_phase) {
  check(*problem);
  PartitionAnswer answer = PartitionFinder(problem, options, on_phase).find();
  const bool cancelled = options.budget.cancelled != nullptr && options.budget.cancelled->load();
  if (cancelled) return answer;
  answer.on_fewer = find_on_fewer(problem, options, answer.devices(), answer.chosen);
  return answer;
}

}  // namespace emplace
