// emplace select: one strategy for each node of a strategy-selection problem, as in the ASPLOS 2025
// contest.
#include <memory>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "io/iopddl.h"
#include "report/selection_report.h"
#include "run/selection_ranks.h"
#include "selection/solve.h"

namespace emplace::cli {
namespace {

constexpr double kDefaultSeconds = 60;

struct SelectArguments {
  std::string problem;
  BudgetArguments budget;
  std::uint64_t seed = 1;
  std::string output;
  bool json = false;
  RankArguments ranks;
};

void select_strategies(const SelectArguments& arguments, Session& session) {
  require_file(session, arguments.problem);
  if (session.member != nullptr) {
    const SelectionProblem problem = read_iopddl(arguments.problem);
    return serve_selection(problem, arguments.budget.make(session), arguments.seed,
                           *session.member);
  }
  const Outputs outputs(session, {arguments.output}, arguments.json, {arguments.problem});
  const SelectionProblem problem = read_iopddl(arguments.problem);
  const Budget budget = arguments.budget.make(session).or_default(kDefaultSeconds);
  std::mutex mutex;
  SelectionProgress last;
  double seconds = 0;
  const SelectionResult result = [&] {
    const Progress progress([&] {
      const std::lock_guard lock(mutex);
      return to_line(last);
    });
    const SelectionOptions options{.progress = [&](const SelectionProgress& now) {
      const std::lock_guard lock(mutex);
      last = now;
    }};
    SelectionResult found =
        session.crew != nullptr
            ? select_on_ranks(problem, budget, arguments.seed, options, *session.crew)
            : emplace::select_strategies(problem, budget, Rng(arguments.seed), options);
    seconds = budget.elapsed_seconds();
    return found;
  }();
  if (session.cancelled) note_interrupted();
  if (!result.feasible) session.exit_code = kExitNothingFits;
  const bool write = result.feasible && !arguments.output.empty();
  if (write) outputs.write(arguments.output, write_strategies_json(result));
  if (arguments.json) {
    fmt::print("{}", with_header({.format = "emplace.selection/1",
                                  .model = arguments.problem,
                                  .budget = &budget,
                                  .ranks = session.crew != nullptr ? session.crew->size() : 1,
                                  .lost_ranks = session.crew != nullptr ? session.crew->lost() : 0},
                                 to_json(problem, result, seconds, arguments.seed)));
    return;
  }
  outputs.print("{}", to_text(problem, result));
  if (write && !outputs.files().empty()) outputs.print("\nwrote {}\n", arguments.output);
}

}  // namespace

void add_select(Command& root, Session& session) {
  auto arguments = std::make_shared<SelectArguments>();
  Command command =
      root.command("select", "Choose one strategy for each node of a strategy-selection problem");
  command
      .text("problem", arguments->problem,
            "Problem of the ASPLOS 2025 contest (IOPDDL): JSON, also gzipped")
      .required()
      .type("FILE");
  command
      .text("--time", arguments->budget.time,
            fmt::format("Stop searching after this long, e.g. 30s or 5m. Default: {:.0f}s",
                        kDefaultSeconds))
      .type("DURATION");
  command
      .integer("--threads", arguments->budget.threads, 1, 1024,
               "How many threads to use. Default: all")
      .type("N");
  add_seed(command, arguments->seed);
  arguments->ranks.add_to(command);
  add_file(command, "-o,--output", arguments->output,
           "Write the strategies here; - for standard output, and the report to standard error");
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "Ctrl-C or SIGTERM ends the search, and the best found so far is the answer.\n"
      "Example: emplace select problem.json.gz --time 60s -o strategies.json");
  command.run([arguments, &session] {
    run_on_ranks(arguments->ranks, session, [&] { select_strategies(*arguments, session); });
  });
}

}  // namespace emplace::cli
