// Strategy selection against the best of the twenty teams of the ASPLOS 2025 contest IOPDDL. Prints
// the table of docs/selection.md.
//
//   build/bench/select [FILE...] [--seconds 60] [--threads 2] [--seed 1] [--verbose]
//
// Without files, those of ../shared/data/peers/iopddl beside the repository.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/units.h"

#include "io/iopddl.h"
#include "selection/selection_problem.h"
#include "selection/solve.h"

namespace {

using namespace emplace;

constexpr const char* kFolder = "../shared/data/peers/iopddl";

struct Published {
  std::string_view problem;  // the end of the file's stem
  std::int64_t best;
};

constexpr Published kPublished[] = {
    {"-A", 6548641531}, {"-B", 532843}, {"-G", 217039}, {"-L", 1970993742}, {"-S", 1534613444},
};

std::optional<std::int64_t> published_best(std::string_view stem) {
  for (const Published& entry : kPublished) {
    if (stem.ends_with(entry.problem)) return entry.best;
  }
  return std::nullopt;
}

std::vector<std::string> contest_files() {
  std::vector<std::string> files;
  if (!std::filesystem::exists(kFolder)) fail_option("{}: is not there; name files", kFolder);
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().string().ends_with(".json.gz")) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

struct Settings {
  double seconds = 60;
  int threads = 2;
  std::uint64_t seed = 1;
  bool verbose = false;
};

void run(const std::string& path, const Settings& settings) {
  const SelectionProblem problem = read_iopddl(path);
  SelectionOptions options;
  if (settings.verbose) {
    options.progress = [](const SelectionProgress& progress) {
      fmt::print(stderr, "{:>8.2f} s {:>16}, bound {:>16}\n", progress.seconds,
                 progress.feasible ? format_count(progress.cost) : "none yet",
                 format_count(progress.lower_bound));
    };
  }
  Budget budget;
  budget.seconds = settings.seconds;
  budget.threads = settings.threads;
  const SelectionResult result = select_strategies(problem, budget, Rng(settings.seed), options);
  std::string stem = std::filesystem::path(path).filename().string();
  stem = stem.substr(0, stem.find('.'));
  const auto best = published_best(stem);
  const std::string ratio =
      best ? fmt::format("{:.5f}", static_cast<double>(result.cost) / static_cast<double>(*best))
           : "";
  fmt::print("| {} | {} | {} | {} | {} | {} | {} | {:.2f} s |\n", stem.substr(stem.rfind('-') + 1),
             format_count(problem.num_nodes()), best ? format_count(*best) : "",
             result.feasible ? format_count(result.cost) : "none", ratio,
             format_count(result.lower_bound), result.proven ? "yes" : "no",
             result.first_feasible_seconds);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Strategy selection against the contest's best", "select");
  std::vector<std::string> files;
  Settings settings;
  app.add_option("files", files, "Problems; the contest's unless given");
  app.add_option("--seconds", settings.seconds, "For each problem")->capture_default_str();
  app.add_option("--threads", settings.threads, "Of each run")->capture_default_str();
  app.add_option("--seed", settings.seed, "Of all randomness")->capture_default_str();
  app.add_flag("--verbose", settings.verbose, "Print every improvement");
  CLI11_PARSE(app, argc, argv);
  try {
    if (files.empty()) files = contest_files();
    fmt::print(
        "| problem | nodes | best team | emplace | ratio | lower bound | proven | first |\n");
    fmt::print("|---|---|---|---|---|---|---|---|\n");
    for (const std::string& file : files) run(file, settings);
  } catch (const Error& error) {
    fmt::print(stderr, "select: {}\n", error.what());
    return 2;
  }
  return 0;
}
