// The papers' comparisons of placers, run again in simulation at equal numbers of evaluated
// placements, with the settings of the papers and with ours; prints what docs/reproduction.md
// shows.
//
//   build/bench/reproduce --results docs/results/reproduce.jsonl --figures docs/results/figures
//   build/bench/reproduce --quick
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/parallel.h"

#include "cli/blas.h"
#include "io/file.h"
#include "reproduce/claims.h"
#include "reproduce/commit.h"
#include "reproduce/figures.h"
#include "reproduce/jobs.h"
#include "reproduce/kernels.h"
#include "reproduce/request.h"
#include "reproduce/runs.h"
#include "reproduce/tables.h"
#include "reproduce/verdicts.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

struct Settings {
  bool quick = false;
  int seeds = 5;
  std::optional<std::int64_t> evaluations;  // in place of the workloads' own
  int cores = hardware_threads();
  ProgramRequest request;
  std::string results;
  std::string figures;
  bool print_only = false;

  void make_quick() {
    seeds = 3;
    evaluations = 240;
  }
};

void reproduce(const Settings& settings, const std::string& kernels) {
  const auto begin = std::chrono::steady_clock::now();
  const Program program = program_of(settings.request);
  const Entrants entrants = entrants_of(program);
  check_workloads(settings.request, entrants);
  std::map<std::string, Stage> stages;
  for (const auto& [name, placers] : entrants) stages[name] = make_stage(workload(name));
  if (!settings.print_only && !settings.results.empty()) require_writable(settings.results);
  RunStore store(settings.results, commit(), kernels);
  const std::vector<Job> jobs = jobs_now(
      settings.request, missing_jobs(entrants, settings.seeds, settings.evaluations, store));
  if (!settings.print_only) run_jobs(jobs, stages, settings.cores, store);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;

  const Evidence evidence(std::move(stages), store, settings.seeds, settings.evaluations);
  fmt::print("At most {} seeds", settings.seeds);
  if (!settings.print_only) {
    fmt::print("; {} runs took {:.0f} min on {} cores", jobs.size(), elapsed.count() / 60,
               settings.cores);
  }
  fmt::print(".\n\n");
  fmt::print("{}", to_markdown(program, entrants, evidence));
  if (!settings.figures.empty()) draw_figures(program, program_of({}), evidence, settings.figures);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kernels = pin_kernels();
  emplace::cli::prepare_blas();
  CLI::App app("The papers' comparisons of learned placers, run again.");
  Settings settings;
  Settings quick;
  quick.make_quick();
  app.add_flag("--quick", settings.quick,
               fmt::format("{} seeds of {} evaluations", quick.seeds, *quick.evaluations));
  CLI::Option* seeds = app.add_option("--seeds", settings.seeds, "Runs of each placer")
                           ->check(CLI::Range(1, 1000))
                           ->capture_default_str();
  CLI::Option* evaluations =
      app.add_option("--evaluations", settings.evaluations,
                     "Placements that each run evaluates; by default what a workload says")
          ->check(CLI::PositiveNumber);
  app.add_option("--cores", settings.cores, "Runs side by side, each on one thread")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--claims", settings.request.keys, "Only these claims and tables, such as A3,A5")
      ->delimiter(',');
  app.add_option("--versions", settings.request.versions, "Only these settings: paper, emplace")
      ->delimiter(',')
      ->check(CLI::IsMember({"paper", "emplace"}));
  app.add_option("--workload", settings.request.runs_on,
                 "Run only what is missing on this one (again for more), for what takes hours");
  app.add_option(
         "--results", settings.results,
         "Keep runs here, each with its commit and kernels, and do not repeat those that are "
         "there: remove lines whose code is out of date")
      ->type_name("FILE");
  app.add_flag("--print", settings.print_only, "Run nothing: print what the results have");
  app.add_option("--figures", settings.figures, "Draw every table and curve into this folder")
      ->type_name("FOLDER");
  CLI11_PARSE(app, argc, argv);
  if (settings.quick) {
    if (seeds->empty()) settings.seeds = quick.seeds;
    if (evaluations->empty()) settings.evaluations = quick.evaluations;
  }
  try {
    reproduce(settings, kernels);
  } catch (const std::exception& error) {
    fmt::print(stderr, "reproduce: {}\n", error.what());
    return 2;
  }
  return 0;
}
