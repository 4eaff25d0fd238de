// How fast graphs load, and what a million ops cost in memory: each file is read and compiled, then
// a synthetic layered graph of --ops ops and three times as many edges is written, read back,
// compiled and simulated.
//
//   build/bench/load GRAPH... [--ops N]
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/rng.h"
#include "base/units.h"

#include "sim/simulator.h"

#include "io/file.h"
#include "io/readers.h"
#include "support/workloads.h"

namespace {

using namespace emplace;
using bench::peak_gigabytes;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Every op reads three earlier ones, most of them near.
std::string layered_graph(std::int64_t ops) {
  Rng rng(7);
  std::string text = R"({"format":"emplace.graph/1","name":"layered","tensors":[)";
  for (std::int64_t i = 0; i < ops; ++i) {
    text +=
        fmt::format(R"({}{{"shape":[64,{}],"dtype":"float32"}})", i == 0 ? "" : ",", 64 + i % 512);
  }
  text += R"(],"ops":[)";
  for (std::int64_t i = 0; i < ops; ++i) {
    std::vector<std::int64_t> inputs;
    for (int k = 0; k < 3 && i > k; ++k) {
      const auto reach = static_cast<std::uint64_t>(k == 2 ? i : std::min<std::int64_t>(i, 100));
      inputs.push_back(i - 1 - static_cast<std::int64_t>(rng.below(reach)));
    }
    text += fmt::format(
        R"({}{{"name":"op_{}","type":"{}","inputs":[{}],"outputs":[{}],"flops":{},"time_us":{{"p100":{}.{}}}}})",
        i == 0 ? "" : ",", i, i == 0 ? "input" : "mm", fmt::join(inputs, ","), i, 1000 + i % 7919,
        5 + i % 90, i % 10);
  }
  return text + "]}";
}

void load(const std::string& path, const Cluster* cluster) {
  const double start = seconds_now();
  const Model model = read_model(path);
  const double read = seconds_now();
  const auto problem = compile(model.graph, std::make_shared<const Cluster>(*cluster));
  const Simulator simulator(problem);
  const double compiled = seconds_now();
  const auto workspace = simulator.make_workspace();
  std::vector<DeviceId> devices(problem->num_groups());
  for (GroupId group = 0; group < problem->num_groups(); ++group) {
    devices[group] = static_cast<DeviceId>(static_cast<std::uint64_t>(group) *
                                           problem->num_devices() / problem->num_groups());
  }
  const Placement placement = expand_groups(*problem, devices);
  const double before = seconds_now();
  const Evaluation evaluation = simulator.evaluate(placement, ReadyOrder{}, *workspace);
  const double simulated = seconds_now();
  fmt::print("{:<22} {:>9} {:>9} {:>8.3f} s {:>8.3f} s {:>8.3f} s {:>8.2f} GB   step {}\n",
             model.graph->name(), model.graph->num_ops(), model.graph->num_edges(), read - start,
             compiled - read, simulated - before, peak_gigabytes(), format_time(evaluation.step));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time to read, compile and simulate graphs, and the peak of memory.");
  std::vector<std::string> graphs;
  std::string preset = "4xp100";
  std::int64_t ops = 1'000'000;
  app.add_option("graphs", graphs, "Graph files");
  app.add_option("--cluster", preset, "Cluster file or preset");
  app.add_option("--ops", ops, "Size of the synthetic graph; 0: none");
  CLI11_PARSE(app, argc, argv);
  try {
    const auto cluster = read_cluster(preset);
    fmt::print("{:<22} {:>9} {:>9} {:>10} {:>10} {:>10} {:>11}\n", "graph", "ops", "edges", "read",
               "compile", "simulate", "peak so far");
    for (const std::string& graph : graphs) load(graph, cluster.get());
    if (ops > 0) {
      const std::string path =
          std::filesystem::temp_directory_path() / fmt::format("layered-{}.json", ops);
      // In a process of its own this would not count towards the peak; the text is gone before the
      // read.
      write_file(path, layered_graph(ops));
      load(path, cluster.get());
      std::filesystem::remove(path);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
