// How fast the simulator is: CPU time per op of non-zero length, step time and peaks, over many
// different placements (with few, the branch predictor memorises them), best of several rounds.
// lines/s: placements as `emplace simulate MODEL -` takes and answers them, on one thread.
//
//   build/bench/simulate GRAPH... [--cluster CLUSTER] [--scheduler pct] [--placements N] [--rounds
//   N]
#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "base/rng.h"

#include "sim/simulator.h"

#include "placer/scheduler.h"

#include "io/readers.h"
#include "report/simulation_lines.h"

namespace {

using namespace emplace;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::vector<Placement> random_placements(const Problem& problem, int count, Rng& rng) {
  std::vector<Placement> result;
  for (int i = 0; i < count; ++i) {
    std::vector<DeviceId> devices(problem.num_groups());
    for (DeviceId& device : devices)
      device = static_cast<DeviceId>(rng.below(problem.num_devices()));
    result.push_back(expand_groups(problem, devices));
  }
  return result;
}

// By group: its first op that computes, or, for parameters and inputs, the first op that reads it.
std::vector<OpId> positions(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<OpId> result(problem.num_groups(), kNoOp);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const GroupId group = problem.group_of(op);
    const bool update = graph.phase(op) == Phase::kUpdate;
    if (problem.fastest_duration(op) > 0 && !update) result[group] = std::min(result[group], op);
    for (const TensorId tensor : graph.inputs(op)) {
      const GroupId from = problem.group_of(graph.producer(tensor));
      if (from != group && graph.is_source(problem.group_ops(from)[0]))
        result[from] = std::min(result[from], op);
    }
  }
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    if (result[group] == kNoOp) result[group] = problem.group_ops(group)[0];
  }
  return result;
}

// Blocks of consecutive ops, with cuts at random places.
std::vector<Placement> contiguous_placements(const Problem& problem, int count, Rng& rng) {
  std::vector<Placement> result;
  const std::vector<OpId> position = positions(problem);
  for (int i = 0; i < count; ++i) {
    std::vector<std::uint64_t> cuts(problem.num_devices() - 1U);
    for (auto& cut : cuts) cut = rng.below(problem.num_ops());
    std::sort(cuts.begin(), cuts.end());
    std::vector<DeviceId> devices(problem.num_groups());
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      devices[group] = static_cast<DeviceId>(
          std::upper_bound(cuts.begin(), cuts.end(), position[group]) - cuts.begin());
    }
    result.push_back(expand_groups(problem, devices));
  }
  return result;
}

std::vector<Placement> single_placements(const Problem& problem, int count) {
  std::vector<Placement> result;
  for (int i = 0; i < count; ++i) {
    result.emplace_back(problem.num_ops(), static_cast<DeviceId>(i % problem.num_devices()));
  }
  return result;
}

struct Timing {
  double full = 1e30;       // ns per op, with peaks
  double step_only = 1e30;  // ns per op
  double lines = 1e30;      // ns per op, from a JSON line to a JSON line
};

// "[0,1,0]", which `emplace simulate MODEL -` takes.
std::vector<std::string> as_lines(const std::vector<Placement>& placements) {
  std::vector<std::string> lines;
  for (const Placement& placement : placements) {
    lines.push_back(fmt::format("[{}]", fmt::join(placement, ",")));
  }
  return lines;
}

Timing measure(const std::shared_ptr<const Problem>& problem, const Simulator& simulator,
               const std::vector<Placement>& placements, const std::vector<ReadyOrder>& orders,
               int rounds, double ops_per_run) {
  const auto workspace = simulator.make_workspace();
  const double scale = 1e9 / (ops_per_run * static_cast<double>(placements.size()));
  const std::vector<std::string> lines = as_lines(placements);
  SimulationLines many(problem, Objective());
  Timing best;
  for (int round = 0; round < rounds; ++round) {
    double start = cpu_seconds();
    for (std::size_t i = 0; i < placements.size(); ++i) {
      benchmark::DoNotOptimize(simulator.evaluate(placements[i], orders[i], *workspace));
    }
    best.full = std::min(best.full, (cpu_seconds() - start) * scale);
    start = cpu_seconds();
    for (std::size_t i = 0; i < placements.size(); ++i) {
      benchmark::DoNotOptimize(simulator.step_time(placements[i], orders[i], *workspace));
    }
    best.step_only = std::min(best.step_only, (cpu_seconds() - start) * scale);
    start = cpu_seconds();
    for (const std::string& line : lines) benchmark::DoNotOptimize(many.answer("1", line));
    best.lines = std::min(best.lines, (cpu_seconds() - start) * scale);
  }
  return best;
}

void run(const std::string& path, const std::string& cluster_name, const std::string& scheduler,
         int placements, int rounds) {
  const Model model = read_model(path);
  const auto problem = compile(model.graph, read_cluster(cluster_name));
  const Simulator simulator(problem);
  double ops = 0;
  for (OpId op = 0; op < problem->num_ops(); ++op) ops += problem->fastest_duration(op) > 0 ? 1 : 0;
  Rng rng(1);
  const auto print = [&](const char* kind, const std::vector<Placement>& set) {
    std::vector<ReadyOrder> orders;
    for (const Placement& placement : set) {
      orders.emplace_back(*problem, make_schedule(*problem, placement, scheduler));
    }
    const Timing timing = measure(problem, simulator, set, orders, rounds, ops);
    fmt::print("{:<22} {:<12} {:>7.0f} {:>9.1f} {:>10.1f} {:>12.0f} {:>12.0f}\n",
               model.graph->name(), kind, ops, timing.full, timing.step_only,
               1e9 / (timing.full * ops), 1e9 / (timing.lines * ops));
  };
  print("one device", single_placements(*problem, placements));
  print("contiguous", contiguous_placements(*problem, placements, rng));
  print("random", random_placements(*problem, placements, rng));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("CPU time of one simulated step per op of non-zero length.");
  std::vector<std::string> graphs;
  std::string cluster = "4xp100";
  std::string scheduler = "fifo";
  int placements = 64;
  int rounds = 7;
  app.add_option("graphs", graphs, "Graph files")->required();
  app.add_option("--cluster", cluster, "Cluster file or preset");
  app.add_option("--scheduler", scheduler, "Order of the ops: fifo, pct or msr");
  app.add_option("--placements", placements, "Different placements per figure");
  app.add_option("--rounds", rounds, "Rounds, of which the best counts");
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:<22} {:<12} {:>7} {:>9} {:>10} {:>12} {:>12}\n", "graph", "placements", "ops",
             "ns/op", "step only", "steps/s", "lines/s");
  try {
    for (const std::string& graph : graphs) run(graph, cluster, scheduler, placements, rounds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
