// How far predictions are from executed steps: for each model a profile, then some placements,
// each predicted and executed. Prints the tables of docs/results/execution.md.
//
//   build/bench/fidelity --cluster local.yaml [MODEL...] [--steps 7] [--warm-up 10] [--phases 2]
//                        [--seconds 3] [--gpu-memory 0.6]
//
// The placements are those of support/candidates.h. Errors are |predicted / measured - 1|; "one
// factor" is after dividing by the geometric mean of the ratios, the machine's speed of the moment;
// "oracle" is predicted from the op times of the very run. Placements whose steps' quartiles differ
// by more than 5 % are shown and not judged. The last line is what the search gains, as measured
// and as predicted, over one device and over the best of the classical placers. With --gpu-memory
// the GPU has that share of what the model needs on it, and only placers' answers are executed,
// within that memory.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"

#include "sim/simulator.h"

#include "cli/blas.h"
#include "io/readers.h"
#include "report/table.h"
#include "run/execution.h"
#include "run/problem_request.h"
#include "run/profile.h"
#include "support/candidates.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

constexpr double kCalm = 0.05;  // of a row that is judged

const std::vector<std::string> kModels = {
    "zoo:resnet-50:batch=4,image=96",
    "zoo:bert-base:batch=2,sequence=64,layers=6",
    "zoo:gnmt-2:batch=64,sequence=6,hidden=512,vocabulary=4000",
    "zoo:inception-v3:batch=4,image=139",
    "zoo:gpt2-small:batch=2,sequence=64,layers=6",
    "zoo:densenet-121:batch=4,image=64",
};

struct Settings {
  std::string cluster;
  std::vector<std::string> models = kModels;
  int steps = 7;
  int phases = 2;
  int proposals = 3;
  int warm_up = 10;
  double seconds = 3;
  double gpu_memory = 0;  // 0: what it has
};

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const double other : values)
      ranks[i] += other < values[i] ? 1 : other == values[i] ? 0.5 : 0;
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto mean = [](const std::vector<double>& x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  };
  const double am = mean(a);
  const double bm = mean(b);
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - am) * (b[i] - bm);
    aa += (a[i] - am) * (a[i] - am);
    bb += (b[i] - bm) * (b[i] - bm);
  }
  return aa == 0 || bb == 0 ? 1 : ab / std::sqrt(aa * bb);
}

struct Errors {
  double median = 0;
  double worst = 0;
  double spearman = 1;
};

Errors errors_of(const std::vector<double>& predicted, const std::vector<double>& measured,
                 double factor = 1) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    errors.push_back(std::abs(predicted[i] / factor / measured[i] - 1));
  }
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back(),
          correlation(ranks_of(predicted), ranks_of(measured))};
}

std::string text(const Errors& errors) {
  return fmt::format("{:.1f} / {:.1f} / {:.2f}", 100 * errors.median, 100 * errors.worst,
                     errors.spearman);
}

double milliseconds(Nanoseconds time) {
  return static_cast<double>(time) / 1e6;
}

struct Row {
  Origin origin = Origin::kMade;
  double measured = 0;
  double predicted = 0;
};

// The fastest as measured.
const Row* best_of(const std::vector<Row>& rows, Origin origin) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (row.origin == origin && (best == nullptr || row.measured < best->measured)) best = &row;
  }
  return best;
}

void print_gains(const std::vector<Row>& rows) {
  const Row* searched = best_of(rows, Origin::kSearched);
  if (searched == nullptr) return;
  const auto print = [&](const char* name, Origin origin) {
    const Row* other = best_of(rows, origin);
    if (other == nullptr) {
      fmt::print("{}: none fits. ", name);
      return;
    }
    fmt::print("{}: {:.2f} ms, {:.2f} times as long as auto measured, {:.2f} predicted. ", name,
               other->measured, other->measured / searched->measured,
               other->predicted / searched->predicted);
  };
  fmt::print("auto: {:.2f} ms measured. ", searched->measured);
  print("One device", Origin::kSingle);
  print("Best classical", Origin::kClassical);
  fmt::print("\n");
}

// The first device with a share of the memory that the model needs on it.
ClusterSpec with_less_memory(const Problem& problem, double share) {
  ClusterSpec spec = problem.cluster().spec();
  const Timeline alone = Simulator(std::shared_ptr<const Problem>(&problem, [](const Problem*) {
                         })).run(Placement(problem.num_ops(), 0), {});
  spec.devices[0].memory = static_cast<Bytes>(share * static_cast<double>(alone.devices[0].peak));
  return spec;
}

void try_model(const std::string& model, const Settings& settings) {
  const auto loaded = load_problem({.model = model, .cluster = settings.cluster});
  const auto graph = std::shared_ptr<const Graph>(loaded, &loaded->graph());
  const auto cluster = std::shared_ptr<const Cluster>(loaded, &loaded->cluster());
  fmt::print("\n{} on {}: {} ops\n", model, cluster->name(), graph->num_ops());
  std::fflush(stdout);
  ProfileSettings profile_settings{
      .phases = settings.phases,
      .proposals = settings.proposals,
      .measure = {.steps = settings.steps, .warm_up = settings.warm_up}};
  Profiler profiler(graph, cluster, profile_settings);
  Profile profile;
  {
    Laboratory laboratory(cluster);
    for (const std::string& warning : laboratory.warnings()) fmt::print("warning: {}\n", warning);
    std::vector<ProfilePhase> phases;
    for (int i = 0; i < settings.phases; ++i) phases.push_back(profiler.measure(laboratory, i));
    profile = profiler.combine(phases);
    profiler.learn_transfers(laboratory, profile);
  }
  for (const KindProfile& kind : profile.kinds) {
    fmt::print(
        "{}: step {:.1f} ms, ops {:.1f} ms, {:.1f} us between ops, busy {:+.1f} %, phases differ "
        "by {:.1f} %\n",
        kind.kind, milliseconds(kind.step.median), milliseconds(kind.ops),
        static_cast<double>(kind.gap) / 1e3, 100 * (kind.busy_ratio - 1),
        100 * kind.step.relative());
  }
  for (const LinkProfile& link : profile.links) {
    fmt::print(
        "{} -> {}: {:.1f} us, {:.2f} GB/s{}\n", link.from, link.to,
        static_cast<double>(link.fit.latency) / 1e3, static_cast<double>(link.fit.bandwidth) / 1e9,
        link.measured ? fmt::format(", fitted within {:.0f} %, and {:.1f} us beside",
                                    100 * link.fit.error, static_cast<double>(link.added) / 1e3)
                      : ", throttled");
  }
  auto measured_cluster = std::make_shared<const Cluster>(profile.cluster);
  auto problem = compile(profile.graph, measured_cluster, CostMode::kMeasured);
  const bool short_of_memory = settings.gpu_memory > 0;
  if (short_of_memory) {
    measured_cluster =
        std::make_shared<const Cluster>(with_less_memory(*problem, settings.gpu_memory));
    problem = compile(profile.graph, measured_cluster, CostMode::kMeasured);
    fmt::print("{}: {}\n", measured_cluster->device(0).name,
               format_bytes(measured_cluster->device(0).memory));
  }
  Laboratory laboratory(measured_cluster, {.limit_memory = short_of_memory});
  Table table({{"placement"},
               {"measured ms", Table::Align::kRight},
               {"quartiles %", Table::Align::kRight},
               {"predicted", Table::Align::kRight},
               {"oracle", Table::Align::kRight},
               {"sent", Table::Align::kRight},
               {"memory", Table::Align::kRight},
               {"drift %", Table::Align::kRight}});
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<double> oracle;
  double logs = 0;
  std::vector<Row> rows;
  for (const Candidate& candidate : candidates(problem, settings.seconds, short_of_memory)) {
    const Execution run = execute(laboratory, problem, candidate.placement, candidate.schedule,
                                  {.steps = settings.steps, .warm_up = 4});
    if (run.failed()) {
      fmt::print("{}: {}\n", candidate.name, run.measurement.failure->text);
      continue;
    }
    const TimeSpread step = run.measurement.step();
    double memory = 0;
    for (DeviceId id = 0; id < problem->num_devices(); ++id) {
      const auto peak = static_cast<double>(run.predicted.devices[id].peak);
      if (peak < 1 << 20) continue;
      const double ratio = static_cast<double>(run.measurement.memory[id].peak) / peak;
      if (std::abs(ratio - 1) > std::abs(memory - 1) || memory == 0) memory = ratio;
    }
    table.add({candidate.name, fmt::format("{:.2f}", milliseconds(step.median)),
               fmt::format("{:.1f}", 100 * step.relative()),
               fmt::format("{:.3f}", run.predicted_ratio()),
               fmt::format("{:.3f}", run.oracle_ratio()),
               fmt::format("{}", run.measurement.transfers.size()), fmt::format("{:.3f}", memory),
               fmt::format("{:+.1f}", 100 * (run.drift.value_or(1) - 1))});
    rows.push_back({candidate.origin, milliseconds(step.median), milliseconds(run.predicted.step)});
    if (step.relative() > kCalm) continue;
    predicted.push_back(milliseconds(run.predicted.step));
    measured.push_back(milliseconds(step.median));
    oracle.push_back(milliseconds(run.oracle));
    logs += std::log(run.predicted_ratio());
  }
  const double factor =
      predicted.empty() ? 1 : std::exp(logs / static_cast<double>(predicted.size()));
  fmt::print("{}", table.to_string());
  fmt::print(
      "of {} calm placements, median / worst / Spearman: predicted {}, one factor ({:.3f}) {}, "
      "oracle {}\n",
      predicted.size(), text(errors_of(predicted, measured)), factor,
      text(errors_of(predicted, measured, factor)), text(errors_of(oracle, measured)));
  print_gains(rows);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  cli::prepare_blas();
  Settings settings;
  CLI::App app("How far predictions are from executed steps.");
  app.add_option("models", settings.models, "Models");
  app.add_option("-c,--cluster", settings.cluster, "A cluster of this machine's devices")
      ->required();
  app.add_option("--steps", settings.steps, "Steps that are timed");
  app.add_option("--warm-up", settings.warm_up, "Steps of a profile that do not count");
  app.add_option("--phases", settings.phases, "Phases of the profile");
  app.add_option("--proposals", settings.proposals, "Of a search, to learn what transfers cost");
  app.add_option("--gpu-memory", settings.gpu_memory,
                 "Share of the model's memory that the first device has");
  app.add_option("--seconds", settings.seconds, "For each search");
  CLI11_PARSE(app, argc, argv);
  try {
    for (const std::string& model : settings.models) try_model(model, settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fidelity: {}\n", error.what());
    return 2;
  }
  return 0;
}
