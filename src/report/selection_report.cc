#include "report/selection_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace emplace {
namespace {

double gap_percent(const SelectionResult& result) {
  if (result.cost <= result.lower_bound) return 0;
  return 100 * (static_cast<double>(result.cost) /
                    static_cast<double>(std::max<std::int64_t>(result.lower_bound, 1)) -
                1);
}

}  // namespace

std::string to_json(const SelectionProblem& problem, const SelectionResult& result, double seconds,
                    std::uint64_t seed) {
  const SelectionValue value = evaluate(problem, result.strategies);
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

std::string to_text(const SelectionProblem& problem, const SelectionResult& result) {
  const SelectionValue value = evaluate(problem, result.strategies);
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

std::string to_line(const SelectionProgress& progress) {
  if (progress.seconds == 0) return "reducing the problem";
  const std::string cost = progress.feasible ? format_count(progress.cost) : "none yet";
  return fmt::format("{} nodes left, best cost {}, at least {}", progress.nodes_left, cost,
                     format_count(progress.lower_bound));
}

}  // namespace emplace
