// emplace compare: several placers and seeds on one problem, as a table sorted by step time.
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "base/units.h"

#include "cli/command.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/shortfall.h"
#include "cli/table.h"
#include "io/file.h"

namespace emplace::cli {
namespace {

using Align = Table::Align;

struct Arguments {
  ProblemArguments problem;
  StageArguments stages;
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

// What the table shows of a result; its timeline is not kept.
struct Row {
  const RunResult* result;
  Nanoseconds time = 0;  // step time or period
  double ratio_to_bound = 0;
  std::string memory;
  std::int64_t transfers = 0;
  Bytes transfer_bytes = 0;
  std::string json;
};

std::string search_time(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.0f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

// The device nearest to its limit.
std::string memory_cell(const Outcome& outcome) {
  double worst = 0;
  Bytes short_by = 0;
  for (DeviceId device = 0; device < outcome.problem().num_devices(); ++device) {
    const Bytes capacity = outcome.problem().cluster().device(device).memory;
    const Bytes used = outcome.used(device);
    if (capacity == kUnlimited) continue;
    if (used > 0)
      worst = std::max(worst, static_cast<double>(used) / static_cast<double>(capacity));
    short_by += std::max<Bytes>(0, used - capacity);
  }
  if (short_by > 0) return "does not fit: " + format_bytes(short_by) + " short";
  return fmt::format("{:.0f} %", worst * 100);
}

Row make_row(const RunResult& result, const Outcome& outcome) {
  return {&result,
          outcome.time(),
          outcome.ratio_to_bound(),
          memory_cell(outcome),
          outcome.timeline.num_transfers,
          outcome.timeline.transfer_bytes,
          to_json(outcome, &result)};
}

std::string comparison_table(const std::vector<Row>& rows, const Arguments& arguments) {
  constexpr int kBarWidth = 16;
  const bool several_seeds = arguments.seeds > 1;
  const bool stream = arguments.objective.throughput();
  Nanoseconds slowest = 1;
  for (const Row& row : rows) slowest = std::max(slowest, row.time);
  Table table({{"placer"},
               {"order"},
               {several_seeds ? "seed" : "", Align::kRight},
               {stream ? "period" : "step time", Align::kRight},
               {""},
               {"/ bound", Align::kRight},
               {"fullest memory", Align::kRight},
               {"transfers", Align::kRight},
               {"sent", Align::kRight},
               {"search", Align::kRight}});
  for (const Row& row : rows) {
    table.add({row.result->run.placer.to_string(), row.result->run.scheduler,
               several_seeds ? fmt::format("{}", row.result->run.seed) : "", format_time(row.time),
               bar(static_cast<double>(row.time) / static_cast<double>(slowest), kBarWidth),
               fmt::format("{:.2f}", row.ratio_to_bound), row.memory, format_count(row.transfers),
               format_bytes(row.transfer_bytes), search_time(row.result->seconds)});
  }
  return table.to_string();
}

std::string verdict(const RunResult& result, const Outcome& best) {
  const std::string name = result.run.placer.to_string();
  if (!best.fits()) {
    return fmt::format("None fits in memory; {} is nearest.\n{}", name, describe_shortfall(best));
  }
  std::string text = fmt::format("{} wins with {}. ", name, format_time(best.time()));
  if (best.optimal()) {
    return text + fmt::format("That is optimal, as proven by the {}.\n", best.bound.reason);
  }
  return text + fmt::format(
                    "No placement that fits can be below {} (by the {}), so it is at most {:.0f} % "
                    "above the best possible.\n",
                    format_time(best.bound.step), best.bound.reason,
                    (best.ratio_to_bound() - 1) * 100);
}

std::string rows_to_json(const std::vector<Row>& rows) {
  std::string text = "[";
  for (const Row& row : rows) text += (text.size() == 1 ? "\n" : ",\n") + row.json;
  return text + "]\n";
}

// Of the results, best first, each placer's and seed's first.
void keep_best_orders(std::vector<RunResult>& results) {
  std::set<std::pair<std::string, std::uint64_t>> seen;
  std::erase_if(results, [&](const RunResult& result) {
    return !seen.emplace(result.run.placer.to_string(), result.run.seed).second;
  });
}

void compare(const Arguments& arguments, Session& session) {
  const LoadedProblem loaded = arguments.problem.load();
  const Stages stages(loaded, arguments.stages, arguments.objective);
  for (const std::string& path : {arguments.output, arguments.trace}) require_folder(path);
  if (refuse_hopeless(stages, session)) return;
  const bool best_order = arguments.schedulers == "best";
  const auto runs = make_runs(arguments.placers, best_order ? "all" : arguments.schedulers,
                              arguments.seed, arguments.seeds);
  auto results = run_all(stages, runs, arguments.budget, arguments.learning, TimeFor::kEachRun,
                         arguments.objective, session);
  const std::size_t done = results.size();
  if (best_order) keep_best_orders(results);

  const Assessor assessor(stages.whole(), arguments.objective, proven_bound(results));
  const auto assess = [&](const RunResult& result) {
    return assessor.assess(result.result.placement, result.result.schedule);
  };
  std::vector<Row> rows;
  rows.reserve(results.size());
  for (const RunResult& result : results) rows.push_back(make_row(result, assess(result)));
  const Outcome best = assess(results.front());
  if (!best.fits()) session.exit_code = kExitNothingFits;

  if (!arguments.output.empty()) write_placement(arguments.output, best, results.front());
  if (!arguments.trace.empty()) write_trace(arguments.trace, best);
  if (arguments.json) {
    fmt::print("{}", rows_to_json(rows));
    return;
  }
  fmt::print("{}\n{}\n{}", describe_problem(*loaded.problem), comparison_table(rows, arguments),
             verdict(results.front(), best));
  if (done < runs.size()) fmt::print("{} of {} runs gave a result.\n", done, runs.size());
  if (!arguments.output.empty()) fmt::print("wrote the best placement to {}\n", arguments.output);
  if (!arguments.trace.empty()) {
    fmt::print("wrote its timeline to {} (open it at ui.perfetto.dev)\n", arguments.trace);
  }
}

}  // namespace

void add_compare(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand("compare", "Compare placers on one model and cluster");
  arguments->problem.add_to(command);
  command
      .add_option("-p,--placers,--placer", arguments->placers,
                  "all, or a list such as heft,\"metis(imbalance=1.1)\",expert")
      ->capture_default_str()
      ->type_name("SPECS");
  command
      .add_option("--schedulers,--scheduler", arguments->schedulers,
                  "best (each placer's best order), all, or a list of own, fifo, pct, msr")
      ->capture_default_str()
      ->type_name("KEYS");
  command.add_option("--seed", arguments->seed, "First seed")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--seeds", arguments->seeds, "How many seeds the randomised placers run with")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  arguments->objective.add_to(command);
  arguments->stages.add_to(command);
  arguments->budget.add_to(command, "each placer has all of it");
  arguments->learning.add_to(command, /*several_runs=*/true);
  command.add_option("-o,--output", arguments->output, "Write the best placement here")
      ->type_name("FILE");
  command.add_option("--trace", arguments->trace, "Write the best one's timeline here")
      ->type_name("FILE");
  command.add_flag("--json", arguments->json, "Print the results as a JSON list, best first");
  command.footer(
      "Example: emplace compare model.json.gz --cluster 4xp100 --placers heft,metis,expert "
      "--schedulers all");
  command.callback([arguments, &session] { compare(*arguments, session); });
}

}  // namespace emplace::cli
