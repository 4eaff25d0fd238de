// emplace partition: how every tensor is cut up (cli/partition_model.h). With --iopddl, one
// strategy for each node of a strategy-selection problem, as in the ASPLOS 2025 contest.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"

#include "tensor/methods/all.h"

#include "cli/command.h"
#include "cli/partition_model.h"
#include "cli/progress.h"
#include "io/file.h"
#include "io/readers.h"
#include "io/writers.h"
#include "selection/solve.h"

namespace emplace::cli {
namespace {

constexpr const char* kDefaultTime = "60s";

struct Arguments {
  PartitionArguments model;
  std::string iopddl;
  std::string time;
  int threads = 0;  // 0: as many as there are
  std::uint64_t seed = 1;
  std::string output;
  bool json = false;
};

// What the search says of itself, for the line on standard error.
class SelectionBoard {
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

double seconds_of(const std::string& time) {
  const auto seconds = parse_seconds(time);
  if (!seconds) fail_option("--time {}: expected a duration such as 30s, 5m or 1h", time);
  return *seconds;
}

Budget make_budget(double seconds, int threads, const Session& session) {
  Budget budget;
  budget.seconds = seconds;
  budget.threads = threads > 0 ? threads : hardware_threads();
  budget.cancelled = &session.cancelled;
  return budget;
}

void select(const Arguments& arguments, Session& session) {
  const double limit = seconds_of(arguments.time.empty() ? kDefaultTime : arguments.time);
  require_folder(arguments.output);
  const SelectionProblem problem = read_iopddl(arguments.iopddl);
  SelectionBoard board;
  SelectionOptions options;
  options.progress = [&](const SelectionProgress& progress) { board.note(progress); };
  double seconds = 0;
  const SelectionResult result = [&] {
    const Progress progress([&] { return board.line(); });
    const Budget budget = make_budget(limit, arguments.threads, session);
    SelectionResult found = select_strategies(problem, budget, Rng(arguments.seed), options);
    seconds = budget.elapsed_seconds();
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

// Either a model or a selection problem.
void partition(const Arguments& arguments, Session& session) {
  if (!arguments.iopddl.empty()) {
    if (!arguments.model.problem.model.empty()) {
      fail_option("--iopddl {}: there is a model to partition, too ('{}'); expected one of them",
                  arguments.iopddl, arguments.model.problem.model);
    }
    select(arguments, session);
    return;
  }
  if (arguments.model.problem.model.empty()) {
    fail_option("expected a model to partition, or --iopddl with a strategy-selection problem");
  }
  PartitionArguments model = arguments.model;
  model.seconds = arguments.time.empty() ? kPartitionSeconds : seconds_of(arguments.time);
  model.output = arguments.output;
  model.json = arguments.json;
  partition_model(model, session);
}

}  // namespace

void add_partition(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand(
      "partition", "Divide every tensor and operator of a model among the devices");
  arguments->model.problem.add_to(command, /*model_required=*/false);
  std::vector<std::string> methods;
  for (const MethodInfo* method : all_partition_methods().list()) methods.push_back(method->key);
  command
      .add_option("--method", arguments->model.method,
                  fmt::format("How to look for the partition: {}", fmt::join(methods, ", ")))
      ->capture_default_str()
      ->type_name("NAME");
  command
      .add_option("--workers", arguments->model.workers,
                  "How many of the devices share the work. Default: all but CPUs")
      ->check(CLI::Range(2, 1024))
      ->type_name("N");
  command
      .add_option("--graph", arguments->model.graph,
                  "Write the divided graph here, for emplace simulate and runtimes")
      ->type_name("FILE");
  command
      .add_option("--placement", arguments->model.placement,
                  "Write which of the divided graph's ops is on which device here")
      ->type_name("FILE");
  command
      .add_option("--trace", arguments->model.trace,
                  "Write the timeline here, for Perfetto or chrome://tracing")
      ->type_name("FILE");
  command
      .add_option("--iopddl", arguments->iopddl,
                  "Instead of a model: a strategy-selection problem of the ASPLOS 2025 contest "
                  "(JSON, also gzipped)")
      ->type_name("FILE");
  command
      .add_option(
          "--time", arguments->time,
          fmt::format("Stop searching after this long, e.g. 30s or 5m. Default: {:.0f}s for "
                      "a model, {} for --iopddl",
                      kPartitionSeconds, kDefaultTime))
      ->type_name("DURATION");
  command
      .add_option("--threads", arguments->threads,
                  "With --iopddl: how many threads to use. Default: all")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  command.add_option("--seed", arguments->seed, "With --iopddl: seed of all randomness")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("-o,--output", arguments->output, "Write the plan, or the strategies, here")
      ->type_name("FILE");
  command.add_flag("--json", arguments->json, "Print the result as JSON on standard output");
  command.footer(
      "Ctrl-C ends the search, and the best found so far is the answer.\n"
      "Example: emplace partition zoo:stacked-rnn --cluster 8xv100-nvlink -o plan.json\n"
      "Example: emplace partition --iopddl problem.json.gz --time 60s -o strategies.json");
  command.callback([arguments, &session] { partition(*arguments, session); });
}

}  // namespace emplace::cli
