// What a search reaches when, on graphs of up to a million ops, against the expert's placement in
// its best order; and what that takes in memory.
//
//   build/bench/scale --ops 25000,100000,400000,1000000 --seconds 100 --threads 2
//   build/bench/scale --graphs big.onnx --cluster 8xv100-nvlink
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/units.h"

#include "placers/all.h"

#include "io/readers.h"
#include "report/table.h"
#include "support/trials.h"
#include "support/workloads.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

struct Settings {
  std::vector<std::int64_t> ops{25'000, 100'000, 400'000, 1'000'000};
  std::vector<std::string> graphs;
  std::string cluster = "b";
  std::string placer = "auto";
  double seconds = 100;
  int threads = 2;
};

// Best known after 1, 3, 10, ... seconds, up to the search's time.
std::vector<double> checkpoints(double seconds) {
  std::vector<double> times;
  for (const double time : {1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0}) {
    if (time < seconds) times.push_back(time);
  }
  times.push_back(seconds);
  return times;
}

std::string gnmt(std::int64_t words) {
  return fmt::format("zoo:gnmt-8:sequence={}", words);
}

// GNMT is unrolled in time, so that each word adds as many ops as the one before.
std::string model_of_about(std::int64_t ops) {
  constexpr std::int64_t kShort = 8;
  constexpr std::int64_t kLong = 16;
  const std::int64_t few = read_model(gnmt(kShort)).graph->num_ops();
  const std::int64_t many = read_model(gnmt(kLong)).graph->num_ops();
  const std::int64_t per_word = (many - few) / (kLong - kShort);
  return gnmt(std::max<std::int64_t>(1, kShort + (ops - few) / per_word));
}

struct Outcome {
  std::string name;
  OpId ops = 0;
  double load_seconds = 0;
  Answer expert;
  SearchResult search;
  double before_gigabytes = 0;  // the most before the search began
  double gigabytes = 0;
};

Outcome measure(const std::string& name, const Settings& settings, const MethodSpec& placer) {
  forget_peak_memory();
  const auto start = std::chrono::steady_clock::now();
  const Model model = read_model(name);
  const auto problem = compile(model.graph, cluster_for(model.graph, settings.cluster));
  const auto simulator = std::make_shared<const Simulator>(problem);
  const std::chrono::duration<double> loaded = std::chrono::steady_clock::now() - start;
  Outcome outcome{.name = name,
                  .ops = problem->num_ops(),
                  .load_seconds = loaded.count(),
                  .expert = best_order(simulator, {"expert", {}}),
                  .search = {}};
  outcome.before_gigabytes = peak_gigabytes();
  forget_peak_memory();
  outcome.search = run_search(simulator, {placer, 1, settings.seconds, settings.threads});
  outcome.gigabytes = peak_gigabytes();
  return outcome;
}

std::string cell(const std::optional<Evaluation>& value, const Evaluation& expert) {
  if (!value) return "–";
  if (!value->fits() || !expert.fits()) return format_value(*value);
  return fmt::format("{} ({:.2f}x)", format_value(*value),
                     static_cast<double>(expert.step) / static_cast<double>(value->step));
}

// Printed as it comes, since the whole may take many minutes.
void print(const Outcome& one, const Settings& settings) {
  fmt::print("{} on {}: {} ops, built in {:.1f} s with at most {:.2f} GB\n", one.name,
             settings.cluster, format_count(one.ops), one.load_seconds, one.before_gigabytes);
  Table table({{"best after"}, {"ms (times as fast as expert)", Table::Align::kRight}});
  table.add({one.expert.name, format_value(one.expert.value)});
  for (const double time : checkpoints(settings.seconds)) {
    table.add({fmt::format("{} s", time), cell(one.search.after(time), one.expert.value)});
  }
  const RunResult& run = one.search.run;
  table.add(
      {fmt::format("the end ({:.1f} s)", run.seconds), cell(run.evaluation, one.expert.value)});
  fmt::print("{}{} evaluations, last improved at {:.1f} s, at most {:.2f} GB\n\n",
             table.to_string(), format_count(run.evaluations), one.search.last_improvement(),
             one.gigabytes);
  std::fflush(stdout);
}

void run(const Settings& settings) {
  const MethodSpec placer = MethodSpec::parse(settings.placer);
  all_placers().make(placer);
  std::vector<std::string> names = settings.graphs;
  if (names.empty()) {
    for (const std::int64_t ops : settings.ops) names.push_back(model_of_about(ops));
  }
  for (const std::string& name : names) print(measure(name, settings, placer), settings);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a search reaches when on large graphs.");
  Settings settings;
  app.add_option("--ops", settings.ops, "Sizes of GNMT, unrolled for as many words as it takes")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--graphs", settings.graphs, "Files or zoo:NAME instead");
  app.add_option("--cluster", settings.cluster, "a, b, c (bench/search), a preset or a file")
      ->capture_default_str();
  app.add_option("--placer", settings.placer, "What is measured")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "For each graph")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", settings.threads, "Of each run")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.footer("Example: scale --ops 25000,1000000 --seconds 30 --threads 2");
  CLI11_PARSE(app, argc, argv);
  try {
    run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "scale: {}\n", error.what());
    return 2;
  }
  return 0;
}
