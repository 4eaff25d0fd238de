// How long each classical placer takes and how good its answer is, as ratios to the best of the
// run.
//
//   build/bench/place GRAPH... [--cluster CLUSTER]
#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/units.h"

#include "placer/run.h"

#include "placers/all.h"

#include "bound/lower_bound.h"
#include "io/readers.h"
#include "support/trials.h"

namespace {

using namespace emplace;

void run(const std::string& path, const std::string& cluster) {
  const Model model = read_model(path);
  const auto problem = compile(model.graph, read_cluster(cluster));
  const auto simulator = std::make_shared<const Simulator>(problem);
  std::vector<RunResult> results;
  for (const MethodInfo* info : all_placers().list()) {
    if (!bench::is_constructive(*info)) continue;
    PlaceContext context(simulator);
    results.push_back(run_placer(all_placers(), context,
                                 {{info->key, {}}, std::string(kOwnSchedule), 1}, Budget{}));
  }
  std::stable_sort(results.begin(), results.end(), [](const RunResult& a, const RunResult& b) {
    return a.evaluation < b.evaluation;
  });
  const auto bound = static_cast<double>(lower_bound(*problem).step);
  const auto best = static_cast<double>(results.front().evaluation.step);
  fmt::print("{} on {}\n", model.graph->name(), cluster);
  for (const RunResult& result : results) {
    const auto step = static_cast<double>(result.evaluation.step);
    fmt::print("  {:<14} {:>12} {:>7.2f} x best {:>7.2f} x bound {:>9.3f} s {}\n",
               result.run.placer.key, format_time(result.evaluation.step), step / best,
               step / bound, result.seconds, result.evaluation.fits() ? "" : "does not fit");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Every placer's time and answer on each graph.");
  std::vector<std::string> graphs;
  std::string cluster = "8xp100";
  app.add_option("graphs", graphs, "Graph files")->required();
  app.add_option("--cluster", cluster, "Cluster file or preset");
  CLI11_PARSE(app, argc, argv);
  try {
    for (const std::string& graph : graphs) run(graph, cluster);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
