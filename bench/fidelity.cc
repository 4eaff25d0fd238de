// How far predictions are from executed steps: for each model a profile, then some placements,
// each predicted and executed. Prints the tables of docs/results/execution.md.
//
//   build/bench/fidelity --cluster local.yaml [MODEL...] [--steps 7] [--warm-up 10] [--phases 2]
//                        [--seconds 3] [--gpu-memory 0.6]
//
// The placements are those of support/candidates.h. Errors are |predicted / measured - 1|; "one
// factor" is after dividing by the geometric mean of the ratios, the machine's speed of the moment;
// "oracle" is predicted from the op times of the very run. Placements whose steps' quartiles differ
// by more than 5 % are shown and not judged. Where there are GPUs, those that keep one busy for
// nine tenths of the predicted step are judged once more by themselves, and every placement is
// executed with each op launched by itself, too. Then comes what the search gains, as measured and
// as predicted, over one device and over the best of the classical placers; at the end, where that
// is least. With --gpu-memory the GPU has that share of what the model needs on it, and only
// placers' answers are executed, within that memory.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"

#include "cluster/runs_on.h"

#include "sim/simulator.h"

#include "cli/blas.h"
#include "io/readers.h"
#include "report/table.h"
#include "run/execution.h"
#include "run/problem_request.h"
#include "run/profile.h"
#include "support/candidates.h"
#include "support/errors.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

constexpr double kCalm = 0.05;  // of a row that is judged
constexpr double kBound = 0.9;  // of one that a GPU bounds

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
  int proposals = 8;
  int warm_up = 10;
  double seconds = 3;
  double gpu_memory = 0;  // 0: what it has
};

double milliseconds(Nanoseconds time) {
  return static_cast<double>(time) / 1e6;
}

// One placement, predicted and executed. Times are in milliseconds.
struct Row {
  std::string name;
  Origin origin = Origin::kMade;
  double measured = 0;
  double quartiles = 0;  // how far they are apart, by the median
  double predicted = 0;
  double oracle = 0;
  double gpu_share = 0;    // of the predicted step in which the busiest GPU computes
  double each_launch = 0;  // measured, with each op launched by itself; 0: no GPU has any
  double memory = 0;       // measured by predicted, of the device that is furthest off
  double drift = 0;
  std::size_t sent = 0;

  bool calm() const { return quartiles <= kCalm; }
  bool gpu_bound() const { return gpu_share >= kBound; }
};

using Rows = std::vector<Row>;

// The fastest as measured, or the slowest.
const Row* best_of(const Rows& rows, Origin origin, bool worst = false) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (row.origin != origin) continue;
    if (best == nullptr || (row.measured < best->measured) != worst) best = &row;
  }
  return best;
}

// How much longer others take than what the search found; 0: none fits.
struct Gain {
  double best = 0;
  double worst = 0;  // of the search's slowest answer
};

Gain gain_over(const Rows& rows, Origin origin) {
  const Row* other = best_of(rows, origin);
  const Row* best = best_of(rows, Origin::kSearched);
  const Row* worst = best_of(rows, Origin::kSearched, /*worst=*/true);
  if (other == nullptr || best == nullptr) return {};
  return {other->measured / best->measured, other->measured / worst->measured};
}

void print_gains(const Rows& rows) {
  const Row* searched = best_of(rows, Origin::kSearched);
  if (searched == nullptr) return;
  fmt::print("auto: {:.2f} ms measured. ", searched->measured);
  for (const auto& [name, origin] : {std::pair("One device", Origin::kSingle),
                                     std::pair("Best classical", Origin::kClassical)}) {
    const Row* other = best_of(rows, origin);
    if (other == nullptr) {
      fmt::print("{}: none fits. ", name);
      continue;
    }
    const Gain gain = gain_over(rows, origin);
    fmt::print(
        "{}: {:.2f} ms, {:.2f} times as long as auto measured ({:.2f} of its slowest answer), "
        "{:.2f} predicted. ",
        name, other->measured, gain.best, gain.worst, other->predicted / searched->predicted);
  }
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

Profile profile_of(const std::shared_ptr<const Graph>& graph,
                   const std::shared_ptr<const Cluster>& cluster, const Settings& settings) {
  const Profiler profiler(graph, cluster,
                          {.phases = settings.phases,
                           .proposals = settings.proposals,
                           .measure = {.steps = settings.steps, .warm_up = settings.warm_up}});
  Laboratory laboratory(cluster);
  for (const std::string& warning : laboratory.warnings()) fmt::print("warning: {}\n", warning);
  std::vector<ProfilePhase> phases;
  for (int i = 0; i < settings.phases; ++i) phases.push_back(profiler.measure(laboratory, i));
  Profile profile = profiler.combine(phases);
  profiler.learn_transfers(laboratory, profile);
  return profile;
}

double gpu_share(const Problem& problem, const Timeline& predicted) {
  double share = 0;
  for (DeviceId id = 0; id < problem.num_devices(); ++id) {
    if (!is_gpu(problem.cluster().device(id))) continue;
    share = std::max(share, static_cast<double>(predicted.devices[id].busy) /
                                static_cast<double>(std::max<Nanoseconds>(1, predicted.step)));
  }
  return share;
}

double furthest_memory(const Execution& run) {
  double furthest = 0;
  for (DeviceId id = 0; id < run.problem->num_devices(); ++id) {
    const auto peak = static_cast<double>(run.predicted.devices[id].peak);
    if (peak < 1 << 20) continue;
    const double ratio = static_cast<double>(run.measurement.memory[id].peak) / peak;
    if (furthest == 0 || std::abs(ratio - 1) > std::abs(furthest - 1)) furthest = ratio;
  }
  return furthest;
}

// Nothing where the step fails.
std::optional<Row> try_candidate(Laboratory& laboratory,
                                 const std::shared_ptr<const Problem>& problem,
                                 const Candidate& candidate, const Settings& settings) {
  MeasureSettings measure{.steps = settings.steps, .warm_up = 4};
  const Execution run =
      execute(laboratory, problem, candidate.placement, candidate.schedule, measure);
  if (run.failed()) {
    fmt::print("{}: {}\n", candidate.name, run.measurement.failure->text);
    return std::nullopt;
  }
  const TimeSpread step = run.measurement.step();
  Row row{.name = candidate.name,
          .origin = candidate.origin,
          .measured = milliseconds(step.median),
          .quartiles = step.relative(),
          .predicted = milliseconds(run.predicted.step),
          .oracle = milliseconds(run.oracle),
          .gpu_share = gpu_share(*problem, run.predicted),
          .memory = furthest_memory(run),
          .drift = run.drift.value_or(1) - 1,
          .sent = run.measurement.transfers.size()};
  if (row.gpu_share == 0) return row;
  measure.gpu_launch = exec::GpuLaunch::kEach;
  const Measurement each = laboratory.measure(
      std::shared_ptr<const Graph>(problem, &problem->graph()), candidate.placement,
      order_of(*problem, candidate.placement, candidate.schedule, false), measure);
  if (!each.failure) row.each_launch = milliseconds(each.step().median);
  return row;
}

std::string table_of(const Rows& rows) {
  Table table({{"placement"},
               {"measured ms", Table::Align::kRight},
               {"quartiles %", Table::Align::kRight},
               {"predicted", Table::Align::kRight},
               {"oracle", Table::Align::kRight},
               {"GPU busy %", Table::Align::kRight},
               {"each launched / graphs", Table::Align::kRight},
               {"sent", Table::Align::kRight},
               {"memory", Table::Align::kRight},
               {"drift %", Table::Align::kRight}});
  for (const Row& row : rows) {
    table.add({row.name, fmt::format("{:.2f}", row.measured),
               fmt::format("{:.1f}", 100 * row.quartiles),
               fmt::format("{:.3f}", row.predicted / row.measured),
               fmt::format("{:.3f}", row.oracle / row.measured),
               row.gpu_share == 0 ? "" : fmt::format("{:.0f}", 100 * row.gpu_share),
               row.each_launch == 0 ? "" : fmt::format("{:.2f}", row.each_launch / row.measured),
               fmt::format("{}", row.sent), fmt::format("{:.3f}", row.memory),
               fmt::format("{:+.1f}", 100 * row.drift)});
  }
  return table.to_string();
}

void print_errors(const char* which, const Rows& rows) {
  std::vector<double> predicted;
  std::vector<double> measured;
  std::vector<double> oracle;
  double logs = 0;
  for (const Row& row : rows) {
    predicted.push_back(row.predicted);
    measured.push_back(row.measured);
    oracle.push_back(row.oracle);
    logs += std::log(row.predicted / row.measured);
  }
  const double factor = rows.empty() ? 1 : std::exp(logs / static_cast<double>(rows.size()));
  fmt::print(
      "of {} {}, median / worst / Spearman: predicted {}, one factor ({:.3f}) {}, oracle {}\n",
      rows.size(), which, text(errors_of(predicted, measured)), factor,
      text(errors_of(predicted, measured, factor)), text(errors_of(oracle, measured)));
}

void print_judgement(const Rows& rows) {
  fmt::print("{}", table_of(rows));
  Rows calm = rows;
  std::erase_if(calm, [](const Row& row) { return !row.calm(); });
  print_errors("calm placements", calm);
  const bool gpus =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.gpu_share > 0; });
  if (gpus) {
    std::erase_if(calm, [](const Row& row) { return !row.gpu_bound(); });
    print_errors("calm placements bound by a GPU", calm);
  }
  print_gains(rows);
  std::fflush(stdout);
}

void print_profile(const Profile& profile) {
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
  if (!profile.transfers) return;
  fmt::print("{} proposals, the last predicted {:+.1f} % off{}\n", profile.transfers->proposals,
             100 * profile.transfers->error, profile.transfers->near ? "" : ": not settled");
}

// What the search gained on one model.
struct Gains {
  std::string model;
  Gain over_one = {};
  Gain over_classical = {};
};

Gains try_model(const std::string& model, const Settings& settings) {
  const auto loaded = load_problem({.model = model, .cluster = settings.cluster});
  const auto graph = std::shared_ptr<const Graph>(loaded, &loaded->graph());
  const auto cluster = std::shared_ptr<const Cluster>(loaded, &loaded->cluster());
  fmt::print("\n{} on {}: {} ops\n", model, cluster->name(), graph->num_ops());
  std::fflush(stdout);
  const Profile profile = profile_of(graph, cluster, settings);
  print_profile(profile);
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
  Rows rows;
  for (const Candidate& candidate : candidates(problem, settings.seconds, short_of_memory)) {
    if (auto row = try_candidate(laboratory, problem, candidate, settings)) {
      rows.push_back(std::move(*row));
    }
  }
  print_judgement(rows);
  return {model, gain_over(rows, Origin::kSingle), gain_over(rows, Origin::kClassical)};
}

// Of each the model on which it is least, by the search's best answer and by its slowest.
void print_worst_gains(const std::vector<Gains>& all) {
  for (const auto& [name, over] :
       {std::pair("one device", &Gains::over_one),
        std::pair("the best classical placer", &Gains::over_classical)}) {
    for (const auto& [answer, gain] :
         {std::pair("best", &Gain::best), std::pair("slowest", &Gain::worst)}) {
      const Gains* least = nullptr;
      for (const Gains& gains : all) {
        const double value = gains.*over.*gain;
        if (value > 0 && (least == nullptr || value < least->*over.*gain)) least = &gains;
      }
      if (least == nullptr) continue;
      fmt::print("Least gain over {}, of auto's {} answer: {:.2f} ({})\n", name, answer,
                 least->*over.*gain, least->model);
    }
  }
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
  bool list = false;
  app.add_flag("--list", list, "Print the models and end");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const std::string& model : settings.models) fmt::print("{}\n", model);
    return 0;
  }
  try {
    std::vector<Gains> gains;
    for (const std::string& model : settings.models) gains.push_back(try_model(model, settings));
    print_worst_gains(gains);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fidelity: {}\n", error.what());
    return 2;
  }
  return 0;
}
