// emplace place: a model and a cluster in, a placement out.
#include <cstdio>

#include <fmt/core.h>

#include "base/units.h"

#include "cli/command.h"
#include "cli/explanation.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "io/file.h"

namespace emplace::cli {
namespace {

constexpr const char* kDefaultPlacer = "auto";

struct Arguments {
  ProblemArguments problem;
  StageArguments stages;
  ObjectiveArguments objective;
  BudgetArguments budget;
  LearningArguments learning;
  std::string placer = kDefaultPlacer;
  std::string scheduler;
  std::uint64_t seed = 1;
  std::string output;
  std::string trace;
  bool json = false;
};

void print_notes(const RunResult& result, const Stages& stages) {
  for (const std::string& note : result.result.notes) fmt::print(stderr, "note: {}\n", note);
  if (!stages.starts().empty() && stages.starts().front().value < result.evaluation) {
    fmt::print(stderr, "note: {}, which was to begin from, is better: {}\n",
               stages.starts().front().origin, format_time(stages.starts().front().value.step));
  }
}

void print_written(const Arguments& arguments) {
  if (!arguments.output.empty()) fmt::print("\nwrote {}\n", arguments.output);
  if (!arguments.trace.empty()) {
    fmt::print("wrote {} (open it at ui.perfetto.dev)\n", arguments.trace);
  }
}

void place(const Arguments& arguments, Session& session) {
  const LoadedProblem loaded = arguments.problem.load();
  const Stages stages(loaded, arguments.stages, arguments.objective);
  for (const std::string& path : {arguments.output, arguments.trace}) require_folder(path);
  if (refuse_hopeless(stages, session)) {
    if (arguments.json) fmt::print("{}", hopeless_json(stages));
    return;
  }
  // A search over placers also looks for the best order of ops, unless one was asked for.
  const bool portfolio = arguments.placer == "all";
  const std::string scheduler = !arguments.scheduler.empty() ? arguments.scheduler
                                : portfolio                  ? "all"
                                                             : "own";
  const auto runs = make_runs(arguments.placer, scheduler, arguments.seed, 1);
  const auto results = run_all(stages, runs, arguments.budget, arguments.learning,
                               TimeFor::kAllRuns, arguments.objective, session);
  const RunResult& best = results.front();
  const Assessor assessor(stages.whole(), arguments.objective, proven_bound(results));
  Outcome outcome = assessor.assess(best.result.placement, best.result.schedule);
  outcome.most_devices = arguments.stages.devices;
  print_notes(best, stages);
  if (session.cancelled) fmt::print(stderr, "note: interrupted; this is the best so far\n");
  if (!outcome.fits()) session.exit_code = kExitNothingFits;
  if (!arguments.output.empty()) write_placement(arguments.output, outcome, best);
  if (!arguments.trace.empty()) write_trace(arguments.trace, outcome);
  const Explanation explanation = explain(outcome, arguments.objective, arguments.problem, results);
  if (arguments.json) {
    fmt::print("{}", to_json(outcome, &best, &explanation));
    return;
  }
  fmt::print("{}\nplaced by {} with {} order{}\n{}{}", describe_problem(*loaded.problem),
             best.run.placer.to_string(), best.run.scheduler,
             results.size() > 1 ? fmt::format(", the best of {} tries", results.size()) : "",
             to_text(outcome), to_text(explanation, outcome));
  print_written(arguments);
}

}  // namespace

void add_place(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand("place", "Find a placement of a model on a cluster");
  arguments->problem.add_to(command);
  command
      .add_option(
          "-p,--placer,--placers", arguments->placer,
          "Placer and its options, e.g. \"heft(insertion=false)\"; all: the best of every one")
      ->capture_default_str()
      ->type_name("SPEC");
  command
      .add_option(
          "--scheduler,--schedulers", arguments->scheduler,
          "Order of ready ops: own (the placer's), fifo, pct, msr, or all: the best of them")
      ->type_name("KEY");
  arguments->objective.add_to(command);
  arguments->stages.add_to(command);
  arguments->budget.add_to(command, "shared by all placers that run");
  arguments->learning.add_to(command, /*several_runs=*/false);
  command.add_option("--seed", arguments->seed, "Seed of all randomness")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("-o,--output", arguments->output, "Write the placement here")
      ->type_name("FILE");
  command
      .add_option("--trace", arguments->trace,
                  "Write the timeline here, for Perfetto or chrome://tracing")
      ->type_name("FILE");
  command.add_flag("--json", arguments->json, "Print the result as JSON on standard output");
  command.footer(
      "Ctrl-C ends a search, and the best placement found so far is the answer.\n"
      "Example: emplace place model.onnx --cluster 4xp100 --dim batch=32 --pin \"head=gpu0\" -o "
      "placement.json");
  command.callback([arguments, &session] { place(*arguments, session); });
}

}  // namespace emplace::cli
