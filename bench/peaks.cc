// How far peaks of memory are from predicted ones, whatever the machine's load: for each model and
// number of devices a profile, then some placements (support/candidates.h), each predicted and
// executed on devices that share a core. Prints the table of docs/results/execution.md.
//
//   build/bench/peaks [MODEL...] [--devices 1,2,4] [--seconds 1] [--rows]
//
// A ratio is measured by predicted, of a device that has at least a twentieth of the model's peak
// on one device. "oracle" is predicted from the op times of the very run, so that nothing but the
// rules of memory is left; the order of events is still the run's. With --rows every placement is
// shown.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"

#include "sim/simulator.h"

#include "cli/blas.h"
#include "report/table.h"
#include "run/execution.h"
#include "run/problem_request.h"
#include "run/profile.h"
#include "support/candidates.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

const std::vector<std::string> kModels = {
    "zoo:resnet-50:batch=4,image=96",
    "zoo:vgg-16:batch=2",
    "zoo:inception-v3:batch=4,image=139",
    "zoo:gnmt-2:batch=16,sequence=6,hidden=256,vocabulary=2000",
    "zoo:bert-base:batch=2,sequence=64,layers=3",
    "zoo:transformer-base:batch=2,layers=2",
};

struct Settings {
  std::vector<std::string> models = kModels;
  std::vector<int> devices = {1, 2, 4};
  double seconds = 1;
  bool rows = false;
};

// Devices on one core, joined by links that are slow enough not to depend on it.
std::shared_ptr<const Cluster> shared_core(int count) {
  ClusterSpec spec;
  spec.name = fmt::format("{} on one core", count);
  for (int i = 0; i < count; ++i) {
    Device device;
    device.name = fmt::format("cpu{}", i);
    device.kind = "cpu";
    device.memory = kUnlimited;
    device.runs_on = "cores 0";
    spec.devices.push_back(device);
  }
  LinkRule rule;
  rule.bandwidth = 1'000'000'000;
  rule.latency = 50'000;
  rule.channel = "out";
  rule.throttled = true;
  spec.links.push_back(rule);
  return std::make_shared<const Cluster>(spec);
}

Profile profile_of(const std::shared_ptr<const Graph>& graph,
                   const std::shared_ptr<const Cluster>& cluster) {
  const ProfileSettings settings{
      .phases = 1, .proposals = 0, .measure = {.steps = 2, .warm_up = 1}};
  const Profiler profiler(graph, cluster, settings);
  Laboratory laboratory(cluster);
  return profiler.combine({profiler.measure(laboratory, 0)});
}

double ratio(Bytes measured, Bytes predicted) {
  return static_cast<double>(measured) / static_cast<double>(predicted);
}

struct Ratios {
  std::vector<double> all = {};

  void add(double value) { all.push_back(value); }
  std::string text() {
    if (all.empty()) return "-";
    std::sort(all.begin(), all.end());
    const auto near = std::count_if(all.begin(), all.end(),
                                    [](double value) { return std::abs(value - 1) <= 0.1; });
    return fmt::format("{:.3f} to {:.3f}, median {:.3f}; {} of {}", all.front(), all.back(),
                       all[all.size() / 2], near, all.size());
  }
};

// Of one placement, by device.
std::string join(const std::vector<double>& ratios) {
  std::string text;
  for (const double value : ratios) text += fmt::format("{}{:.3f}", text.empty() ? "" : " ", value);
  return text;
}

void try_model(const std::string& model, int devices, const Settings& settings, Table& table) {
  const auto cluster = shared_core(devices);
  const auto loaded = load_problem({.model = model, .cluster = "2xp100"});
  const auto graph = std::shared_ptr<const Graph>(loaded, &loaded->graph());
  const Profile profile = profile_of(graph, cluster);
  const auto problem =
      compile(profile.graph, std::make_shared<const Cluster>(profile.cluster), CostMode::kMeasured);
  const Bytes alone = Simulator(problem).run(Placement(problem->num_ops(), 0), {}).devices[0].peak;
  Laboratory laboratory(std::shared_ptr<const Cluster>(problem, &problem->cluster()));
  Ratios predicted;
  Ratios oracle;
  const std::vector<Candidate> tried =
      devices == 1 ? std::vector<Candidate>{{"single", Placement(problem->num_ops(), 0)}}
                   : candidates(problem, settings.seconds);
  for (const Candidate& candidate : tried) {
    const Execution run = execute(laboratory, problem, candidate.placement, candidate.schedule,
                                  {.steps = 2, .warm_up = 1});
    if (run.failed()) fail(ErrorKind::kSystem, "{}", run.measurement.failure->text);
    const Timeline with_own = simulate_with_times(problem, candidate.placement, candidate.schedule,
                                                  run.measurement.op_times);
    std::vector<double> ratios;
    std::vector<double> own;
    for (DeviceId id = 0; id < problem->num_devices(); ++id) {
      if (run.predicted.devices[id].peak < alone / 20) continue;
      const Bytes measured = run.measurement.memory[id].peak;
      ratios.push_back(ratio(measured, run.predicted.devices[id].peak));
      own.push_back(ratio(measured, with_own.devices[id].peak));
      predicted.add(ratios.back());
      oracle.add(own.back());
    }
    if (settings.rows) {
      fmt::print("{:10} {}; oracle {}\n", candidate.name, join(ratios), join(own));
      std::fflush(stdout);
    }
  }
  table.add({model.substr(4), fmt::format("{}", devices), predicted.text(), oracle.text()});
}

}  // namespace

int main(int argc, char** argv) {
  cli::prepare_blas();
  Settings settings;
  CLI::App app("How far peaks of memory are from predicted ones.");
  app.add_option("models", settings.models, "Models of the zoo");
  app.add_option("--devices", settings.devices, "How many")->delimiter(',');
  app.add_option("--seconds", settings.seconds, "For each search");
  app.add_flag("--rows", settings.rows, "Every placement");
  CLI11_PARSE(app, argc, argv);
  Table table(
      {{"model"}, {"devices"}, {"measured / predicted; within 10 %"}, {"measured / oracle"}});
  try {
    for (const std::string& model : settings.models) {
      for (const int devices : settings.devices) {
        fmt::print("{} on {}\n", model, devices);
        std::fflush(stdout);
        try_model(model, devices, settings, table);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "peaks: {}\n", error.what());
    return 2;
  }
  fmt::print("{}", table.to_string());
  return 0;
}
