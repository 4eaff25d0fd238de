#include "cli/page_commands.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace emplace::cli {
namespace {

// That take about as long as a plan.
constexpr std::int64_t kPlacementsPerPlan = 1000;

}  // namespace

std::string as_typed(std::span<const std::string> words) {
  std::string line = "emplace";
  for (const std::string& word : words) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("_-+=.,:/@%").find(static_cast<char>(c)) != std::string_view::npos;
    });
    line += ' ';
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

std::string divide_command(const ProblemArguments& problem, const ProblemRequest& request,
                           const BudgetArguments& budget, std::uint64_t seed) {
  std::vector<std::string> words{"partition", request.model};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--cluster", request.cluster);
  add("--kinds", request.kinds);
  add("--cost", problem.cost == "auto" ? "" : problem.cost);
  add("--in-place", problem.in_place == "sums" ? "" : problem.in_place);
  for (const auto& [name, size] : request.dims) add("--dim", fmt::format("{}={}", name, size));
  if (request.batch) add("--batch", fmt::format("{}", *request.batch));
  if (request.training.training) words.emplace_back("--training");
  add("--optimizer", request.training.optimizer);
  add("--precision", request.training.precision);
  if (request.training.colocate_gradients) words.emplace_back("--colocate-gradients");
  for (const std::string& module : request.training.recompute) add("--recompute", module);
  for (const std::string& scale : problem.what_if.scales) add("--scale", scale);
  for (const std::string& price : problem.what_if.prices) add("--price", price);
  add("--time", budget.time);
  if (budget.evaluations) {
    add("--evaluations",
        fmt::format("{}", std::max<std::int64_t>(1, *budget.evaluations / kPlacementsPerPlan)));
  }
  if (budget.threads > 0) add("--threads", fmt::format("{}", budget.threads));
  if (seed != 1) add("--seed", fmt::format("{}", seed));
  return as_typed(words);
}

}  // namespace emplace::cli
