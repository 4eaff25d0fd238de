#include "tofu/columns.h"

#include <algorithm>
#include <ctime>
#include <memory>

#include "base/error.h"

#include "sim/simulator.h"

#include "placer/run.h"

#include "placers/all.h"

#include "tensor/evaluate.h"
#include "tensor/methods/all.h"
#include "tensor/prepare.h"
#include "tensor/topology.h"

#include "io/readers.h"
#include "selection/solve.h"
#include "tofu/swap.h"

namespace emplace::tofu {
namespace {

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::shared_ptr<const Problem> problem_of(const GridModel& model, const Machine& machine,
                                          std::int64_t batch, const Settings& settings) {
  return compile(read_model(model.with_batch(batch), {}).graph, read_cluster(machine.cluster),
                 CompileOptions{.in_place = settings.in_place});
}

Trial one_device(const std::shared_ptr<const Problem>& problem, bool limited) {
  const Simulator simulator(problem);
  const auto workspace = simulator.make_workspace();
  std::vector<Bytes> peaks(problem->num_devices());
  const Evaluation value =
      simulator.evaluate(Placement(problem->num_ops(), 0), ReadyOrder(), *workspace, peaks);
  return {.replicas = problem->num_devices(),
          .step = value.step,
          .peak = peaks[0],
          .fits = !limited || value.fits()};
}

// Where all of it fits, nothing is swapped.
Trial swapped(const std::shared_ptr<const Problem>& problem, const Machine& machine) {
  if (const Trial whole = one_device(problem, true); whole.fits) return whole;
  const auto outcome = swap_step(*problem, {.memory = problem->cluster().device(0).memory,
                                            .host_bandwidth = machine.host_bandwidth,
                                            .host_latency = machine.host_latency});
  if (!outcome) return {};
  return {.replicas = problem->num_devices(),
          .step = outcome->step,
          .moved = (outcome->sent_out + outcome->fetched) * problem->num_devices(),
          .peak = outcome->peak,
          .fits = true};
}

Trial placed(const std::shared_ptr<const Problem>& problem, const std::string& placer,
             const Settings& settings) {
  PlaceContext context(std::make_shared<const Simulator>(problem));
  Budget budget;
  budget.evaluations = settings.placements;
  budget.seconds = settings.seconds;
  budget.threads = 1;
  const double began = processor_seconds();
  const RunResult found = run_placer(
      all_placers(), context,
      {.placer = MethodSpec::parse(placer), .scheduler = std::string(kBestSchedule)}, budget);
  const double ended = processor_seconds();
  const Timeline timeline = Simulator(problem).run(found.result.placement, found.result.schedule);
  Trial trial{.step = timeline.step,
              .moved = timeline.transfer_bytes,
              .fits = timeline.fits(),
              .search_seconds = ended - began};
  for (const DeviceUse& use : timeline.devices) trial.peak = std::max(trial.peak, use.peak);
  return trial;
}

Trial divided(const std::shared_ptr<const Problem>& whole, const std::string& method,
              const Settings& settings) {
  const std::shared_ptr<const Cluster> cluster(whole, &whole->cluster());
  const auto graph = std::make_shared<const Graph>(prepare_to_divide(whole->graph()));
  const auto problem = compile(graph, cluster, CompileOptions{.in_place = settings.in_place});
  const WorkerDevices on = workers_on(*problem, 0);
  const double began = processor_seconds();
  const PartitionInput input(*graph);
  PartitionContext context(input, problem, on);
  Budget budget;
  budget.evaluations = settings.plans;
  budget.seconds = settings.seconds;
  budget.threads = 1;
  const Plan plan =
      all_partition_methods().make(MethodSpec::parse(method))->find(context, budget, Rng(1));
  const double ended = processor_seconds();
  const PlanOutcome outcome =
      evaluate_plan(input, plan, cluster, on.devices, {.in_place = settings.in_place});
  return {.step = outcome.value.step,
          .moved = outcome.moved,
          .peak = *std::max_element(outcome.peaks.begin(), outcome.peaks.end()),
          .fits = outcome.value.fits(),
          .search_seconds = ended - began};
}

}  // namespace

double Trial::samples_per_second() const {
  if (!fits || step == 0) return 0;
  return static_cast<double>(batch * replicas) * 1e9 / static_cast<double>(step);
}

Trial try_batch(const GridModel& model, const Machine& machine, const std::string& column,
                std::int64_t batch, const Settings& settings) {
  const auto problem = problem_of(model, machine, batch, settings);
  Trial trial;
  if (column == "ideal" || column == "small-batch") {
    trial = one_device(problem, column == "small-batch");
  } else if (column == "swap") {
    trial = swapped(problem, machine);
  } else if (column == "expert" || column == "auto") {
    trial = placed(problem, column, settings);
  } else {
    trial = divided(problem, column, settings);
  }
  trial.batch = batch;
  return trial;
}

std::optional<Trial> best_batch(std::int64_t first, std::int64_t most,
                                const std::function<Trial(std::int64_t)>& at) {
  std::optional<Trial> best;
  const auto fits = [&](std::int64_t batch) {
    const Trial trial = at(batch);
    if (!trial.fits) return false;
    if (!best || trial.samples_per_second() > best->samples_per_second()) best = trial;
    return true;
  };
  std::int64_t low = 0;          // fits
  std::int64_t high = most + 1;  // does not, or is not tried
  for (std::int64_t batch = first; batch <= most; batch *= 2) {
    if (!fits(batch)) {
      high = batch;
      break;
    }
    low = batch;
  }
  while (low == 0 && high > 1) {
    if (fits(high / 2)) {
      low = high / 2;
    } else {
      high /= 2;
    }
  }
  while (low > 0 && high <= most && high - low > std::max<std::int64_t>(1, low / 8)) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return best;
}

SearchTime search_time(const GridModel& model, const Machine& machine, bool coarsening,
                       bool recursion, double limit_seconds) {
  const Settings settings;
  const auto whole = problem_of(model, machine, model.memory_batch, settings);
  const auto graph = std::make_shared<const Graph>(prepare_to_divide(whole->graph()));
  const auto problem = compile(graph, read_cluster(machine.cluster));
  const WorkerDevices on = workers_on(*problem, 0);
  Budget budget;
  budget.seconds = limit_seconds;
  budget.threads = 1;
  const double began = processor_seconds();
  const PartitionInput input(*graph, {coarsening, coarsening, coarsening});
  SearchTime result{.op_classes = input.classes.num_ops};
  try {
    if (recursion) {
      PartitionContext context(input, problem, on);
      context.set_limit(budget);
      const Plan plan =
          all_partition_methods().make(MethodSpec::parse("tofu"))->find(context, budget, Rng(1));
      result.seconds = processor_seconds() - began;
      Traffic traffic(on.workers);
      PartitionProblem costs(input, traffic);
      std::vector<Cuts> ops;
      std::vector<Cuts> tensors;
      for (const OpId op : input.op_of_class) ops.push_back(plan.ops[op]);
      for (const TensorId tensor : input.tensor_of_class) tensors.push_back(plan.tensors[tensor]);
      result.cost = costs.total_cost(ops, tensors);
    } else {
      Traffic traffic(on.workers);
      PartitionProblem costs(input, traffic, Reductions::kPerOp, &budget);
      Ways ways;
      for (ClassId tensor = 0; tensor < input.classes.num_tensors; ++tensor) {
        ways.tensors.push_back(costs.ways_of_tensor(tensor, false));
      }
      for (ClassId op = 0; op < input.classes.num_ops; ++op) {
        ways.ops.push_back(costs.ways_of_op(op, false));
      }
      const SelectionResult found = select_strategies(costs.build(ways), budget, Rng(1));
      if (found.feasible) result.cost = found.cost;
      if (found.proven) result.seconds = processor_seconds() - began;
    }
  } catch (const OutOfTime&) {
    result.cost = 0;
  }
  return result;
}

}  // namespace emplace::tofu
