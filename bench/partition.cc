// Plans of tensor partitioning: how long each method searches, what its plan moves, what the
// fullest device holds against an equal share of the whole, and how long the step takes by the
// simulator; see docs/partitioning.md.
//
//   build/bench/partition MODEL... [--cluster 8xk80] [--methods search,tofu,...] [--workers N]
//       [--seconds S] [--evaluations N] [--seeds N] [--processor-time] [--tried]
#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/units.h"

#include "cost/problem.h"

#include "sim/simulator.h"

#include "tensor/evaluate.h"
#include "tensor/methods/all.h"
#include "tensor/prepare.h"
#include "tensor/step_bound.h"
#include "tensor/topology.h"
#include "tensor/work_bound.h"

#include "io/readers.h"
#include "report/table.h"
#include "support/processor_time.h"

namespace {

using namespace emplace;

struct Settings {
  std::vector<std::string> models;
  std::string cluster = "8xv100-nvlink";
  // Ours, then the published ones, then what they are compared with.
  std::vector<std::string> methods = {"search",  "tofu",       "optcnn", "data-parallel",
                                      "all-row", "equal-chop", "spartan"};
  int workers = 0;
  double seconds = 30;
  std::int64_t evaluations = 0;
  std::uint64_t seeds = 1;
  bool processor_time = false;
  bool tried = false;
};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// What the whole step holds at most on one device.
Bytes peak_on_one(const std::shared_ptr<const Problem>& problem) {
  const Simulator simulator(problem);
  std::vector<Bytes> peaks(problem->num_devices());
  simulator.evaluate(Placement(problem->num_ops(), 0), ReadyOrder(), *simulator.make_workspace(),
                     peaks);
  return peaks[0];
}

void run(const std::string& name, const Settings& settings) {
  const Model model = read_model(name, {});
  const auto cluster = read_cluster(settings.cluster);
  const auto whole = compile(model.graph, cluster);
  const auto graph = std::make_shared<const Graph>(prepare_to_divide(*model.graph));
  const auto problem = compile(graph, cluster);
  const WorkerDevices on = workers_on(*problem, settings.workers);
  const double began = cpu_seconds();
  const PartitionInput input(*graph);
  const double prepared = cpu_seconds() - began;
  const auto share = static_cast<double>(peak_on_one(whole)) / on.workers.count();
  fmt::print(
      "\n{}: {} ops, {} classes of ops, {} of tensors; {} workers as {}; an equal share of "
      "the peak is {}; read and described in {:.2f} s\n",
      name, graph->num_ops(), input.classes.num_ops, input.classes.num_tensors, on.workers.count(),
      fmt::join(on.workers.factors(), " x "), format_bytes(static_cast<Bytes>(share)), prepared);
  Table table({{"method"},
               {"search s", Table::Align::kRight},
               {"plans", Table::Align::kRight},
               {"lower s", Table::Align::kRight},
               {"moved", Table::Align::kRight},
               {"memory", Table::Align::kRight},
               {"of share", Table::Align::kRight},
               {"step", Table::Align::kRight},
               {"fits"}});
  fmt::print("no plan takes less than {} (by work alone: {}, by rates alone: {})\n",
             format_time(divided_step_bound(input, *problem, on).step),
             format_time(divided_work_bound(input, *problem, on)),
             format_time(divided_rate_bound(*problem, on)));
  const auto add_row = [&](const std::string& method, std::uint64_t seed) {
    PartitionContext context(input, problem, on);
    Budget budget;
    budget.seconds = settings.seconds;
    if (settings.evaluations > 0) {
      budget.seconds.reset();
      budget.evaluations = settings.evaluations;
    }
    const double start = cpu_seconds();
    const Plan plan =
        all_partition_methods().make(MethodSpec::parse(method))->find(context, budget, Rng(seed));
    const double searched = cpu_seconds();
    for (const PartitionContext::Tried& tried : context.tried()) {
      if (!settings.tried) break;
      fmt::print("  {}: {}{}\n", tried.method, format_time(tried.outcome.value.step),
                 tried.outcome.value.fits() ? "" : ", does not fit");
    }
    const PlanOutcome outcome = evaluate_plan(input, plan, cluster, on.devices);
    const double lowered = cpu_seconds();
    const Bytes most = *std::max_element(outcome.peaks.begin(), outcome.peaks.end());
    table.add({settings.seeds > 1 ? fmt::format("{}, seed {}", method, seed) : method,
               fmt::format("{:.2f}", searched - start), fmt::format("{}", context.evaluations()),
               fmt::format("{:.2f}", lowered - searched), format_bytes(outcome.moved),
               format_bytes(most), fmt::format("{:.3f}", static_cast<double>(most) / share),
               format_time(outcome.value.step), outcome.value.fits() ? "yes" : "no"});
  };
  for (const std::string& method : settings.methods) {
    for (std::uint64_t seed = 1; seed <= settings.seeds; ++seed) add_row(method, seed);
  }
  fmt::print("{}", table.to_string());
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Plans of tensor partitioning, compared.");
  app.add_option("models", settings.models, "Graphs")->required();
  app.add_option("--cluster", settings.cluster, "Devices");
  app.add_option("--methods", settings.methods, "Which; those of docs/partitioning.md by default")
      ->delimiter(',');
  app.add_option("--workers", settings.workers, "How many of the devices; 0: all");
  app.add_option("--seconds", settings.seconds, "For searches that do not end by themselves");
  app.add_option("--evaluations", settings.evaluations, "Plans to simulate, instead of seconds");
  app.add_option("--seeds", settings.seeds, "Runs of each method, with seeds from 1 on");
  app.add_flag("--processor-time", settings.processor_time, "Seconds are those of the processor");
  app.add_flag("--tried", settings.tried, "Also every plan that a search simulated");
  CLI11_PARSE(app, argc, argv);
  if (settings.processor_time) bench::count_processor_time();
  try {
    for (const std::string& model : settings.models) run(model, settings);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
