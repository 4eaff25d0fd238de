// How fast moves are re-evaluated: CPU time of a full evaluation against that of an incremental
// one, for random moves of single groups at good placements (the best of the classical placers,
// after a hill climb), without and with a cutoff at the base's value. The last columns are ratios
// to the full evaluation: gains, and what recording a base costs. Every result is compared with the
// full evaluation's.
//
//   build/bench/moves GRAPH... [--cluster CLUSTER] [--moves N] [--climb N] [--scheduler KEY]
#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/rng.h"

#include "sim/incremental.h"
#include "sim/simulator.h"

#include "placer/run.h"
#include "placer/scheduler.h"

#include "placers/all.h"

#include "io/readers.h"

namespace {

using namespace emplace;

struct Settings {
  std::string cluster = "4xh200";
  std::string scheduler = "fifo";
  int moves = 2000;
  int climb = 2000;
};

double cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Moves of groups that compute, half of them to the device of a neighbour; or of groups that only
// hold parameters and other sources.
class MoveMaker {
 public:
  MoveMaker(const Problem& problem, bool sources) : problem_(problem) {
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      const auto ops = problem.group_ops(group);
      const bool computes = std::any_of(ops.begin(), ops.end(),
                                        [&](OpId op) { return problem.fastest_duration(op) > 0; });
      if (computes != sources) groups_.push_back(group);
    }
  }

  bool empty() const { return groups_.empty(); }

  Move make(const Placement& placement, Rng& rng) const {
    constexpr int kTries = 100'000;
    for (int i = 0; i < kTries; ++i) {
      const GroupId group = rng.pick(std::span<const GroupId>(groups_));
      const DeviceId here = placement[problem_.group_ops(group)[0]];
      DeviceId device = rng.pick(problem_.allowed_devices(group));
      if (rng.chance(0.5)) {
        const auto neighbour = random_neighbour(group, rng);
        if (!neighbour || !problem_.allowed(group, placement[*neighbour])) continue;
        device = placement[*neighbour];
      }
      if (device != here) return {group, device};
    }
    fail_input("no group has anywhere to go");
  }

 private:
  std::optional<OpId> random_neighbour(GroupId group, Rng& rng) const {
    const Graph& graph = problem_.graph();
    const OpId op = rng.pick(problem_.group_ops(group));
    std::vector<OpId> neighbours;
    for (const TensorId tensor : graph.inputs(op)) neighbours.push_back(graph.producer(tensor));
    for (const TensorId tensor : graph.outputs(op)) {
      const auto consumers = graph.consumers(tensor);
      neighbours.insert(neighbours.end(), consumers.begin(), consumers.end());
    }
    if (neighbours.empty()) return std::nullopt;
    return rng.pick(std::span<const OpId>(neighbours));
  }

  const Problem& problem_;
  std::vector<GroupId> groups_;
};

Placement best_classical(const std::shared_ptr<const Simulator>& simulator,
                         const std::string& scheduler) {
  std::optional<RunResult> best;
  for (const char* key : {"expert", "metis", "scotch", "heft", "m_etf", "m_sct", "single"}) {
    PlaceContext context(simulator);
    RunResult result = run_placer(all_placers(), context, {{key, {}}, scheduler, 1}, Budget{});
    if (!best || result.evaluation < best->evaluation) best = std::move(result);
  }
  return best->result.placement;
}

// Accepts every move that is not worse.
Placement climb(const std::shared_ptr<const Simulator>& simulator, const Placement& placement,
                const ReadyOrder& order, int tries, Rng& rng) {
  IncrementalSimulator incremental(simulator);
  incremental.set_base(placement, order);
  const MoveMaker maker(simulator->problem(), false);
  for (int i = 0; i < tries; ++i) {
    const Move move = maker.make(incremental.placement(), rng);
    const Evaluation base = incremental.base();
    if (incremental.evaluate(move, base) < base) incremental.accept(std::span(&move, 1));
  }
  return incremental.placement();
}

struct Timing {
  double full = 0;  // ns per evaluation
  double exact = 0;
  double cut = 0;
  double record = 0;
};

Timing measure(const std::shared_ptr<const Simulator>& simulator, const Placement& base,
               const ReadyOrder& order, const std::vector<Move>& moves) {
  const Problem& problem = simulator->problem();
  const auto workspace = simulator->make_workspace();
  IncrementalSimulator incremental(simulator);
  incremental.set_base(base, order);
  Timing timing;

  std::vector<Evaluation> expected;
  Placement placement = base;
  double start = cpu_ns();
  for (const Move& move : moves) {
    const auto ops = problem.group_ops(move.group);
    for (const OpId op : ops) placement[op] = move.device;
    expected.push_back(simulator->evaluate(placement, order, *workspace));
    for (const OpId op : ops) placement[op] = base[op];
  }
  timing.full = cpu_ns() - start;

  std::vector<Evaluation> found;
  start = cpu_ns();
  for (const Move& move : moves) found.push_back(incremental.evaluate(move));
  timing.exact = cpu_ns() - start;
  if (found != expected) fail_input("an incremental evaluation differs from the full one");

  std::size_t wrong = 0;
  const Evaluation cutoff = incremental.base();
  start = cpu_ns();
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const bool better = incremental.evaluate(moves[i], cutoff) < cutoff;
    wrong += better != (expected[i] < cutoff) ? 1 : 0;
  }
  timing.cut = cpu_ns() - start;
  if (wrong > 0) fail_input("{} evaluations with a cutoff judge wrongly", wrong);

  constexpr int kRecords = 50;
  start = cpu_ns();
  for (int i = 0; i < kRecords; ++i) incremental.set_base(base, order);
  timing.record = (cpu_ns() - start) / kRecords;

  const auto count = static_cast<double>(moves.size());
  timing.full /= count;
  timing.exact /= count;
  timing.cut /= count;
  return timing;
}

// Sums of logarithms of the ratios: ops without and with a cutoff, sources without and with.
using Sums = std::array<double, 4>;

void run(const std::string& path, const Settings& settings, Sums& sums) {
  const Model model = read_model(path);
  const auto problem = compile(model.graph, read_cluster(settings.cluster));
  const auto simulator = std::make_shared<const Simulator>(problem);
  Rng rng(1);
  Placement base = best_classical(simulator, settings.scheduler);
  const ReadyOrder order(*problem, make_schedule(*problem, base, settings.scheduler));
  base = climb(simulator, base, order, settings.climb, rng);
  for (const bool sources : {false, true}) {
    const MoveMaker maker(*problem, sources);
    if (maker.empty()) continue;
    std::vector<Move> moves;
    for (int i = 0; i < settings.moves; ++i) moves.push_back(maker.make(base, rng));
    const Timing timing = measure(simulator, base, order, moves);
    fmt::print("{:<22} {:<8} {:>10.0f} {:>10.0f} {:>10.0f} {:>7.2f} {:>7.2f} {:>9.2f}\n",
               model.graph->name(), sources ? "sources" : "ops", timing.full, timing.exact,
               timing.cut, timing.full / timing.exact, timing.full / timing.cut,
               timing.record / timing.full);
    sums[sources ? 2 : 0] += std::log(timing.full / timing.exact);
    sums[sources ? 3 : 1] += std::log(timing.full / timing.cut);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("CPU time of re-evaluating a move, against a full evaluation.");
  std::vector<std::string> graphs;
  Settings settings;
  app.add_option("graphs", graphs, "Graph files")->required();
  app.add_option("--cluster", settings.cluster, "Cluster file or preset");
  app.add_option("--scheduler", settings.scheduler, "fifo or another scheduler");
  app.add_option("--moves", settings.moves, "Random moves per figure");
  app.add_option("--climb", settings.climb, "Moves tried to improve the base placement");
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:<22} {:<8} {:>10} {:>10} {:>10} {:>7} {:>7} {:>9}\n", "graph", "moves", "full ns",
             "exact ns", "cutoff ns", "exact", "cutoff", "recording");
  Sums sums{};
  try {
    for (const std::string& graph : graphs) run(graph, settings, sums);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  const auto mean = [&](double sum) { return std::exp(sum / static_cast<double>(graphs.size())); };
  fmt::print(
      "geometric means: ops {:.2f}, with cutoff {:.2f}; sources {:.2f}, with cutoff {:.2f}\n",
      mean(sums[0]), mean(sums[1]), mean(sums[2]), mean(sums[3]));
  return 0;
}
