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
#include "io/iopddl.h"
#include "report/selection_report.h"
#include "selection/solve.h"

namespace emplace::cli {
namespace {

constexpr double kDefaultSeconds = 60;

struct Arguments {
  std::string problem;
  BudgetArguments budget;
  std::uint64_t seed = 1;
  std::string output;
  bool json = false;
};

void select_strategies(const Arguments& arguments, Session& session) {
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
    SelectionResult found = emplace::select_strategies(
        problem, budget, Rng(arguments.seed), {.progress = [&](const SelectionProgress& now) {
          const std::lock_guard lock(mutex);
          last = now;
        }});
    seconds = budget.elapsed_seconds();
    return found;
  }();
  if (session.cancelled) note_interrupted();
  if (!result.feasible) session.exit_code = kExitNothingFits;
  const bool write = result.feasible && !arguments.output.empty();
  if (write) outputs.write(arguments.output, write_strategies_json(result));
  if (arguments.json) {
    fmt::print("{}",
               with_header(
                   {.format = "emplace.selection/1", .model = arguments.problem, .budget = &budget},
                   to_json(problem, result, seconds, arguments.seed)));
    return;
  }
  outputs.print("{}", to_text(problem, result));
  if (write && !outputs.files().empty()) outputs.print("\nwrote {}\n", arguments.output);
}

}  // namespace

void add_select(Command& root, Session& session) {
  auto arguments = std::make_shared<Arguments>();
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
  add_file(command, "-o,--output", arguments->output,
           "Write the strategies here; - for standard output, and the report to standard error");
  add_json(command, arguments->json);
  add_quiet(command);
  command.footer(
      "Ctrl-C or SIGTERM ends the search, and the best found so far is the answer.\n"
      "Example: emplace select problem.json.gz --time 60s -o strategies.json");
  command.run([arguments, &session] { select_strategies(*arguments, session); });
}

}  // namespace emplace::cli
