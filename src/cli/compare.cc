// emplace compare: several placers and seeds on one problem, as a table sorted by time.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "report/assessment_report.h"
#include "report/comparison.h"
#include "report/prose.h"
#include "report/whole_modules.h"

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
  const ProblemRequest request = arguments.problem.make();
  const Outputs outputs({arguments.output, arguments.trace}, arguments.json);
  const auto [problem, op_by_op] = load_problem_and_ops(request);
  const SubsetProblems problems = arguments.subsets.make(problem, arguments.objective.make());
  if (refuse_hopeless(problems, request.granularity, arguments.json, session)) return;
  const bool best_orders = arguments.schedulers == "best";
  std::vector<PlacerRun> runs =
      make_runs(arguments.placers, best_orders ? "all" : arguments.schedulers, arguments.seed,
                arguments.seeds);
  const std::size_t asked = runs.size();
  const Budget budget = arguments.budget.make(session);
  PortfolioResult found = run_portfolio(problems, {.runs = std::move(runs),
                                                   .budget = budget,
                                                   .time_for = TimeFor::kEachRun,
                                                   .learning = arguments.learning.make()});
  const RunResult winner = found.best();
  const Comparison comparison = compare(problems, std::move(found), asked, best_orders);
  if (!comparison.best.fits()) session.exit_code = kExitNothingFits;
  if (session.cancelled) note_interrupted();
  if (!arguments.output.empty()) {
    outputs.write(arguments.output, placement_json(comparison.best, winner, request.made_with()));
  }
  if (!arguments.trace.empty()) outputs.write(arguments.trace, trace_json(comparison.best));
  if (arguments.json) {
    fmt::print("{}", to_json(comparison));
    return;
  }
  std::FILE* report = outputs.report();
  fmt::print(report, "{}",
             fitted(fmt::format("{}\n{}\n{}", describe_problem(*problem), headline(comparison),
                                to_table(comparison, arguments.seeds > 1))));
  if (op_by_op) {
    const WholeModules whole =
        compare_with_ops(op_by_op, request.granularity, comparison.best, winner, budget);
    fmt::print(report, "\n{}", wrapped("For the best: " + describe(whole) + "."));
  }
  if (comparison.done < asked) {
    fmt::print(report, "\n{}{} of {} runs gave a result.\n",
               session.cancelled ? "Interrupted: " : "", comparison.done, asked);
  }
  for (const std::string& path : outputs.files()) {
    const bool trace = path == arguments.trace;
    fmt::print(report, "\nwrote {} to {}{}\n", trace ? "its timeline" : "the best placement", path,
               trace ? " (open it at ui.perfetto.dev)" : "");
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
  add_file(
      command, "-o,--output", arguments->output,
      "Write the best placement here; - for standard output, and the report to standard error");
  add_file(command, "--trace", arguments->trace, "Write the best one's timeline here");
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "Ctrl-C or SIGTERM ends the comparison with the runs done so far; heuristics go first.\n"
      "Example: emplace compare model.json.gz --cluster 4xp100 --placers heft,metis,auto "
      "--schedulers all");
  command.run([arguments, &session] { compare_placers(*arguments, session); });
}

}  // namespace emplace::cli
