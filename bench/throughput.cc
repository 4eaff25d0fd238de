// Periods of streams, with the bound that is proven along: against the best published period of
// each dnn-partitioning workload (Tarnawski et al., NeurIPS 2020), where devices pay for
// communication, memory is respected and CPUs may be used. Prints the table of docs/benchmarks.md.
//
//   build/bench/throughput [MODEL...] [--cluster C] [--seconds 10] [--seeds 5] [--threads 1]
//
// Without models, those of ../shared/data/peers/dnn-partitioning/throughput beside the repository.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/units.h"

#include "io/readers.h"
#include "stream/solve.h"
#include "support/trials.h"
#include "support/workloads.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

constexpr const char* kFolder = "../shared/data/peers/dnn-partitioning/throughput";

// The best period that any other method has been reported to find, in ms, whether it respects
// memory or not.
struct Published {
  std::string_view workload;  // the end of the file's path
  double best_ms;
};

constexpr Published kPublished[] = {
    {"layer/bert24_inference.json", 17.715},       {"layer/bert24_training.json", 39.94},
    {"layer/resnet50_inference.json", 33.77},      {"layer/resnet50_training.json", 78.63},
    {"operator/bert_l-3_inference.json", 21.908},  {"operator/bert_l-3_training.json", 54.207},
    {"operator/bert_l-12_inference.json", 147.48}, {"operator/resnet50_inference.json", 124.349},
};

std::optional<double> published_best(std::string_view path) {
  for (const Published& entry : kPublished) {
    if (path.ends_with(entry.workload)) return entry.best_ms;
  }
  return std::nullopt;
}

struct Setting {
  std::string cluster;
  bool training = false;
  bool overlap = false;
  bool verbose = false;
  double seconds = 10;
  std::uint64_t seeds = 5;
  int threads = 1;
};

struct Run {
  Evaluation value;
  Nanoseconds bound = 0;
  double gap = 0;         // in percent
  double found_at = 0;    // seconds
  double bounded_at = 0;  // seconds
  double seconds = 0;
};

Run solve(const std::shared_ptr<const Problem>& problem, const Setting& setting,
          std::uint64_t seed) {
  const StreamPeriod objective{setting.overlap ? Overlap::kFull : Overlap::kNone};
  PlaceContext context(problem, objective);
  Budget budget;
  budget.seconds = setting.seconds;
  budget.threads = setting.threads;
  Run run;
  const auto listening = context.incumbent().listen([&](const Incumbent& incumbent) {
    const Evaluation value = incumbent.value().value_or(Evaluation{});
    const Nanoseconds bound = incumbent.bound().step;
    if (value != run.value) run.found_at = budget.elapsed_seconds();
    if (bound != run.bound) run.bounded_at = budget.elapsed_seconds();
    run.value = value;
    run.bound = bound;
    if (!setting.verbose) return;
    fmt::print(stderr, "{:>8.2f} s {:>12.4f} ms, bound {:>12.4f} ms\n", budget.elapsed_seconds(),
               milliseconds(value.step), milliseconds(bound));
  });
  solve_stream(context, objective, budget, Rng(seed));
  run.seconds = budget.elapsed_seconds();
  run.gap = 100 * (static_cast<double>(run.value.step) / static_cast<double>(run.bound) - 1);
  return run;
}

double median(const std::vector<Run>& runs, const std::function<double(const Run&)>& figure) {
  std::vector<double> figures;
  for (const Run& run : runs) figures.push_back(figure(run));
  std::sort(figures.begin(), figures.end());
  return figures[figures.size() / 2];
}

void run(const std::string& path, const Setting& setting) {
  ReadOptions options;
  options.training = setting.training;
  const Model model = read_model(path, options);
  const auto cluster = setting.cluster.empty() ? model.cluster : read_cluster(setting.cluster);
  if (cluster == nullptr) fail_option("{}: says nothing of devices; --cluster must", path);
  const auto problem = compile(model.graph, cluster);
  std::vector<Run> runs;
  for (std::uint64_t seed = 1; seed <= setting.seeds; ++seed) {
    runs.push_back(solve(problem, setting, seed));
  }
  const bool fits =
      std::all_of(runs.begin(), runs.end(), [](const Run& one) { return one.value.fits(); });
  const double period = median(runs, [](const Run& one) { return milliseconds(one.value.step); });
  const auto published = published_best(path);
  fmt::print(
      "| {} | {} | {:.4f}{} | {:.4f} | {:.4f} | {:.3f} % | {} | {:.1f} | {:.1f} | {:.1f} |\n",
      std::filesystem::path(path).parent_path().filename().string() + " " +
          std::filesystem::path(path).stem().string(),
      problem->num_groups(), period, fits ? "" : " (does not fit)",
      milliseconds(std::max_element(runs.begin(), runs.end(),
                                    [](const Run& a, const Run& b) { return a.value < b.value; })
                       ->value.step),
      median(runs, [](const Run& one) { return milliseconds(one.bound); }),
      median(runs, [](const Run& one) { return one.gap; }),
      published ? fmt::format("{} ({:.4f} x)", *published, period / *published) : "",
      median(runs, [](const Run& one) { return one.found_at; }),
      median(runs, [](const Run& one) { return one.bounded_at; }),
      median(runs, [](const Run& one) { return one.seconds; }));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Periods of streams, and their bounds.");
  std::vector<std::string> models;
  Setting setting;
  app.add_option("models", models, "Workloads");
  app.add_option("--cluster", setting.cluster, "Unless the model brings its own");
  app.add_option("--seconds", setting.seconds, "Per seed")->check(CLI::PositiveNumber);
  app.add_option("--seeds", setting.seeds, "How many")->check(CLI::PositiveNumber);
  app.add_option("--threads", setting.threads, "Per run")->check(CLI::PositiveNumber);
  app.add_flag("--training", setting.training, "Of a training step");
  app.add_flag("--overlap", setting.overlap, "Communication overlaps with computation");
  app.add_flag("--verbose", setting.verbose, "Print every improvement");
  CLI11_PARSE(app, argc, argv);
  try {
    if (models.empty()) models = files_below(kFolder, ".json");
    if (models.empty()) {
      fmt::print(stderr, "no models given, and none in {}\n", kFolder);
      return 2;
    }
    fmt::print(
        "{} s, {} seeds, {} threads; times in ms, medians but for the worst\n\n"
        "| workload | items | period | worst | bound | gap | published best | found, s | bound, s "
        "| total, s |\n|---|---|---|---|---|---|---|---|---|---|\n",
        setting.seconds, setting.seeds, setting.threads);
    for (const std::string& model : models) run(model, setting);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
