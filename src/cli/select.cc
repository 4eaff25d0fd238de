// emplace select: one strategy for each node of a strategy-selection problem, as in the ASPLOS 2025
// contest.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

#include "cli/command.h"
#include "cli/progress.h"
#include "io/file.h"
#include "io/readers.h"
#include "io/iopddl.h"
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

// What the search says of itself, for the line on standard error.
class SelectionStatus {
 public:
  void note(const SelectionProgress& progress) {
    const std::lock_guard lock(mutex_);
    last_ = progress;
  }
  std::string line() const {
    const std::lock_guard lock(mutex_);
    if (last_.seconds == 0) return "reducing the problem";
    const std::string cost = last_.feasible ? format_count(last_.cost) : "none yet";
    return fmt::format("{} nodes left, best cost {}, at least {}", last_.nodes_left, cost,
                       format_count(last_.lower_bound));
  }

 private:
  mutable std::mutex mutex_;
  SelectionProgress last_;
};

double gap_percent(const SelectionResult& result) {
  if (result.cost <= result.lower_bound) return 0;
  return 100 * (static_cast<double>(result.cost) /
                    static_cast<double>(std::max<std::int64_t>(result.lower_bound, 1)) -
                1);
}

std::string to_json(const SelectionResult& result, const SelectionValue& value, double seconds,
                    std::uint64_t seed) {
  nlohmann::ordered_json json;
  json["cost"] = result.cost;
  json["lower_bound"] = result.lower_bound;
  json["feasible"] = result.feasible;
  json["proven"] = result.proven;
  json["peak_usage"] = value.peak;
  json["seconds"] = seconds;
  if (result.first_feasible_seconds >= 0) {
    json["first_feasible_seconds"] = result.first_feasible_seconds;
  }
  json["seed"] = seed;
  return json.dump(1) + "\n";
}

std::string to_text(const SelectionProblem& problem, const SelectionResult& result,
                    const SelectionValue& value) {
  std::string text =
      fmt::format("{} nodes, {} edges, {} strategies\n", format_count(problem.num_nodes()),
                  format_count(problem.num_edges()),
                  format_count(static_cast<std::int64_t>(problem.total_strategies())));
  if (!result.feasible) {
    return text + (result.proven ? "no selection is feasible (proven)\n"
                                 : "no feasible selection was found\n");
  }
  text += fmt::format("cost         {}\n", result.cost);
  text += result.proven ? "lower bound  the same: no selection costs less\n"
                        : fmt::format("lower bound  {} ({:.3f} % below)\n", result.lower_bound,
                                      gap_percent(result));
  if (problem.usage_limit()) {
    text += fmt::format("peak usage   {} of {}\n", value.peak, *problem.usage_limit());
  }
  return text;
}

void select(const Arguments& arguments, Session& session) {
  SelectionOptions options = make_options(arguments, session);
  require_folder(arguments.output);
  const SelectionProblem problem = read_iopddl(arguments.problem);
  SelectionStatus status;
  options.progress = [&](const SelectionProgress& progress) { status.note(progress); };
  double seconds = 0;
  const SelectionResult result = [&] {
    const Progress progress([&] { return status.line(); });
    const auto began = std::chrono::steady_clock::now();
    SelectionResult found = select_strategies(problem, options);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return found;
  }();
  const SelectionValue value = evaluate(problem, result.strategies);
  if (session.cancelled) fmt::print(stderr, "note: interrupted; this is the best so far\n");
  if (!result.feasible) session.exit_code = kExitNothingFits;
  const bool write = result.feasible && !arguments.output.empty();
  if (write) write_file(arguments.output, write_strategies_json(result));
  if (arguments.json) {
    fmt::print("{}", to_json(result, value, seconds, arguments.seed));
    return;
  }
  fmt::print("{}", to_text(problem, result, value));
  if (write) fmt::print("\nwrote {}\n", arguments.output);
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
  add_file(command, "-o,--output", arguments->output, "Write the strategies here");
  add_json(command, arguments->json);
  command.footer(
      "Ctrl-C ends the search, and the best found so far is the answer.\n"
      "Example: emplace select problem.json.gz --time 60s -o strategies.json");
  command.run([arguments, &session] { select(*arguments, session); });
}

}  // namespace emplace::cli
