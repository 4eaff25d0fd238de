// emplace compare: several placers and seeds on one problem, as a table sorted by time.
#include <fmt/core.h>

#include "cli/command.h"
#include "io/file.h"
#include "report/assessment_report.h"
#include "report/comparison.h"

namespace emplace::cli {
namespace {

struct Arguments {
  ProblemArguments problem;
  SubsetArguments subsets;
  ObjectiveArguments objective;
  BudgetArguments budget;
  LearningArguments learning;
  std::string placers = "all";
  std::string schedulers = "own";
  std::uint64_t seed = 1;
  int seeds = 1;
  std::string output;
  std::string trace;
  bool json = false;
};

void compare_placers(const Arguments& arguments, Session& session) {
  const std::shared_ptr<const Problem> problem = load_noted_problem(arguments.problem.make());
  const SubsetProblems problems = arguments.subsets.make(problem, arguments.objective.make());
  for (const std::string& path : {arguments.output, arguments.trace}) require_folder(path);
  if (refuse_hopeless(problems, false, session)) return;
  const bool best_orders = arguments.schedulers == "best";
  std::vector<PlacerRun> runs =
      make_runs(arguments.placers, best_orders ? "all" : arguments.schedulers, arguments.seed,
                arguments.seeds);
  const std::size_t asked = runs.size();
  PortfolioResult found = run_portfolio(problems, {.runs = std::move(runs),
                                                   .budget = arguments.budget.make(session),
                                                   .time_for = TimeFor::kEachRun,
                                                   .learning = arguments.learning.make()});
  const RunResult winner = found.best();
  const Comparison comparison = compare(problems, std::move(found), asked, best_orders);
  if (!comparison.best.fits()) session.exit_code = kExitNothingFits;
  if (!arguments.output.empty()) {
    write_file(arguments.output, placement_json(comparison.best, winner));
  }
  if (!arguments.trace.empty()) write_file(arguments.trace, trace_json(comparison.best));
  if (arguments.json) {
    fmt::print("{}", to_json(comparison));
    return;
  }
  fmt::print("{}\n{}\n{}", describe_problem(*problem), headline(comparison),
             to_table(comparison, arguments.seeds > 1));
  if (comparison.done < asked) {
    fmt::print("\n{} of {} runs gave a result.\n", comparison.done, asked);
  }
  if (!arguments.output.empty()) fmt::print("\nwrote the best placement to {}\n", arguments.output);
  if (!arguments.trace.empty()) {
    fmt::print("wrote its timeline to {} (open it at ui.perfetto.dev)\n", arguments.trace);
  }
}

}  // namespace

void add_compare(Command& root, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  Command command = root.command("compare", "Compare placers on one model and cluster");
  arguments->problem.add_to(command);
  command
      .text("-p,--placers,--placer", arguments->placers,
            "all, families (heuristic, partition, search, exact, learned), or placers, e.g. "
            "heuristic,auto,\"metis(imbalance=1.1)\"")
      .shown()
      .type("SPECS");
  command
      .text("--schedulers,--scheduler", arguments->schedulers,
            "best (each placer's best order), all, or a list of own, fifo, pct, msr")
      .shown()
      .type("KEYS");
  add_seed(command, arguments->seed, "First seed");
  command
      .integer("--seeds", arguments->seeds, 1, 1000,
               "How many seeds the randomised placers run with")
      .shown();
  arguments->objective.add_to(command);
  arguments->subsets.add_to(command);
  arguments->budget.add_to(command, "each placer has all of it");
  arguments->learning.add_to(command, /*several_runs=*/true);
  add_file(command, "-o,--output", arguments->output, "Write the best placement here");
  add_file(command, "--trace", arguments->trace, "Write the best one's timeline here");
  add_json(command, arguments->json);
  command.footer(
      "Example: emplace compare model.json.gz --cluster 4xp100 --placers heft,metis,auto "
      "--schedulers all");
  command.run([arguments, &session] { compare_placers(*arguments, session); });
}

}  // namespace emplace::cli
