#include "support/trials.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/error.h"

#include "placers/all.h"

namespace emplace::bench {

bool is_constructive(const MethodInfo& info) {
  return info.family == "heuristic" || info.family == "partition";
}

namespace {

Answer run_in_order(const std::shared_ptr<const Simulator>& simulator, const MethodSpec& placer,
                    const std::string& scheduler) {
  PlaceContext context(simulator);
  const RunResult found = run_placer(all_placers(), context, {placer, scheduler, 1}, Budget{});
  const bool own = found.run.scheduler == kOwnSchedule;
  return {placer.to_string() + (own ? "" : " + " + found.run.scheduler), found.evaluation};
}

}  // namespace

Answer best_order(const std::shared_ptr<const Simulator>& simulator, const MethodSpec& placer) {
  return run_in_order(simulator, placer, std::string(kBestSchedule));
}

std::optional<Answer> best_constructive(const std::shared_ptr<const Simulator>& simulator,
                                        std::string_view except, const std::string& scheduler) {
  std::optional<Answer> best;
  for (const MethodInfo* info : all_placers().list()) {
    if (!is_constructive(*info) || info->key == except) continue;
    try {
      const Answer answer = run_in_order(simulator, {info->key, {}}, scheduler);
      if (!best || answer.value < best->value) best = answer;
    } catch (const Error&) {
      // One that cannot cope with the cluster, as with missing links, is not the best.
    }
  }
  return best;
}

std::optional<Evaluation> SearchResult::after(double seconds) const {
  std::optional<Evaluation> value;
  for (const Improvement& improvement : history) {
    if (improvement.seconds > seconds) break;
    value = improvement.value;
  }
  return value;
}

SearchResult run_search(const std::shared_ptr<const Simulator>& simulator, const Search& search) {
  PlaceContext context(simulator);
  Budget budget;
  if (search.evaluations) {
    budget.evaluations = search.evaluations;
  } else {
    budget.seconds = search.seconds;
  }
  budget.threads = search.threads;
  SearchResult result;
  const auto listening = context.incumbent().listen([&](const Incumbent& incumbent) {
    const auto value = incumbent.value();
    if (!value || (!result.history.empty() && !(*value < result.history.back().value))) return;
    result.history.push_back({budget.elapsed_seconds(), *value});
  });
  result.run =
      run_placer(all_placers(), context, {search.placer, search.scheduler, search.seed}, budget);
  return result;
}

const SearchResult& median(std::span<const SearchResult> results) {
  std::vector<const SearchResult*> order;
  for (const SearchResult& result : results) order.push_back(&result);
  std::stable_sort(order.begin(), order.end(), [](const SearchResult* a, const SearchResult* b) {
    return a->run.evaluation < b->run.evaluation;
  });
  return *order.at(order.size() / 2);
}

double geometric_mean(std::span<const double> ratios) {
  if (ratios.empty()) return 0;
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  return std::exp(sum / static_cast<double>(ratios.size()));
}

double milliseconds(Nanoseconds time) {
  return static_cast<double>(time) / 1e6;
}

std::string format_value(const Evaluation& value) {
  return fmt::format("{:.2f}{}", milliseconds(value.step), value.fits() ? "" : " (no fit)");
}

std::string format_ratio(std::optional<double> ratio, int digits) {
  return ratio ? fmt::format("{:.{}f}", *ratio, digits) : "–";
}

}  // namespace emplace::bench
