// Policies on graphs that they may never have seen, beside other placers: step times over the
// expert's, in how many cases a placer fits and is no worse, and how long it takes. Prints what
// docs/policies.md shows.
//
//   build/bench/generalise --graphs family:ptb:seed=100..107 --clusters 4xp100 --memory 0.4,0.8
//     --placers "random" "gdp(policy=shipped)" "gdp(policy=shipped,finetune=50)" "gdp@8000"
//     "auto@10s"
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"

#include "placer/run.h"

#include "placers/all.h"

#include "cli/blas.h"
#include "learn/general/finish.h"
#include "learn/train/environment.h"
#include "run/training_tasks.h"
#include "support/trials.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

struct Settings {
  std::vector<std::string> graphs;
  std::vector<std::string> clusters;
  std::vector<double> memory;
  std::vector<std::string> placers;
  int seeds = 1;
  int cores = hardware_threads();
  bool all = false;
};

// "gdp@8000": a placer with a budget of evaluations; "auto@10s": of time; "finished:random": what a
// placer finds, rounded and made to fit as what policies propose is, which shows what is not
// learned.
struct Entrant {
  std::string text;
  MethodSpec placer;
  Budget budget;
  bool finished = false;
};

Entrant parse(const std::string& text) {
  constexpr std::string_view kFinished = "finished:";
  Entrant entrant{
      .text = text, .placer = {}, .budget = {}, .finished = text.starts_with(kFinished)};
  const std::size_t at = text.rfind('@');
  const std::size_t first = entrant.finished ? kFinished.size() : 0;
  entrant.placer = MethodSpec::parse(text.substr(first, at == std::string::npos ? at : at - first));
  if (at == std::string::npos) return entrant;
  const std::string limit = text.substr(at + 1);
  if (!limit.empty() && limit.find_first_not_of("0123456789") == std::string::npos) {
    entrant.budget.evaluations = std::stoll(limit);
  } else {
    entrant.budget.seconds = parse_seconds(limit);
    if (!entrant.budget.seconds) fail_option("{}: expected evaluations or a duration", text);
  }
  return entrant;
}

// Over the seeds: the geometric mean, whether all fit, and means.
struct Score {
  double ratio = 0;  // to the expert, where both fit
  bool fits = false;
  bool expert_fits = false;
  double seconds = 0;
  std::int64_t evaluations = 0;

  // What fits is better than what does not.
  bool no_worse() const { return fits && (!expert_fits || ratio <= 1.0005); }
};

RunResult finished(PlaceContext& context, RunResult found, std::uint64_t seed) {
  learn::Environment environment(context, Budget{}, "finish");
  const learn::Finish finish(context.problem());
  std::vector<DeviceId> devices(context.problem().num_devices());
  std::iota(devices.begin(), devices.end(), DeviceId{0});
  finish(found.result.placement, devices, environment);
  finish.insist(environment, Rng(seed));
  const Solution best = context.incumbent().best().value();
  if (best.value < found.evaluation) {
    found.result.placement = best.placement;
    found.evaluation = best.value;
  }
  found.evaluations = context.evaluations();
  return found;
}

RunResult run(const NamedProblem& problem, const Entrant& entrant, int seed = 1) {
  PlaceContext context(problem.problem);
  Budget budget;  // its clock begins now
  budget.seconds = entrant.budget.seconds;
  budget.evaluations = entrant.budget.evaluations;
  const PlacerRun chosen{.placer = entrant.placer, .seed = static_cast<std::uint64_t>(seed)};
  RunResult result = run_placer(all_placers(), context, chosen, budget);
  return entrant.finished ? finished(context, std::move(result), chosen.seed) : result;
}

std::vector<Score> run_all(const NamedProblem& problem, const std::vector<Entrant>& entrants,
                           int seeds) {
  const RunResult expert = run(problem, parse("expert"));
  std::vector<Score> scores;
  for (const Entrant& entrant : entrants) {
    Score score{.fits = true, .expert_fits = expert.evaluation.fits()};
    std::vector<double> ratios;
    for (int seed = 1; seed <= seeds; ++seed) {
      const RunResult result = run(problem, entrant, seed);
      ratios.push_back(static_cast<double>(result.evaluation.step) /
                       static_cast<double>(expert.evaluation.step));
      score.fits = score.fits && result.evaluation.fits();
      score.seconds += result.seconds / seeds;
      score.evaluations += result.evaluations / seeds;
    }
    score.ratio = geometric_mean(ratios);
    scores.push_back(score);
  }
  return scores;
}

void print_summary(const std::vector<Entrant>& entrants,
                   const std::vector<std::vector<Score>>& scores) {
  fmt::print(
      "| placer | time / expert's | fits and no worse than the expert | fits | placements | "
      "seconds |\n"
      "|---|---|---|---|---|---|\n");
  for (std::size_t e = 0; e < entrants.size(); ++e) {
    std::vector<double> ratios;
    int no_worse = 0, fits = 0;
    double seconds = 0, evaluations = 0;
    for (const auto& row : scores) {
      const Score& score = row[e];
      if (score.fits && score.expert_fits) ratios.push_back(score.ratio);
      no_worse += score.no_worse() ? 1 : 0;
      fits += score.fits ? 1 : 0;
      seconds += score.seconds;
      evaluations += static_cast<double>(score.evaluations);
    }
    const auto count = static_cast<double>(scores.size());
    fmt::print("| `{}` | {:.3f} | {:.0f} % | {:.0f} % | {:.0f} | {:.2f} |\n", entrants[e].text,
               geometric_mean(ratios), 100 * no_worse / count, 100 * fits / count,
               evaluations / count, seconds / count);
  }
}

void print_all(const std::vector<NamedProblem>& problems, const std::vector<Entrant>& entrants,
               const std::vector<std::vector<Score>>& scores) {
  fmt::print("\n| case |");
  for (const Entrant& entrant : entrants) fmt::print(" `{}` |", entrant.text);
  fmt::print("\n|---|");
  for (std::size_t e = 0; e < entrants.size(); ++e) fmt::print("---|");
  fmt::print("\n");
  for (std::size_t i = 0; i < problems.size(); ++i) {
    fmt::print("| {} |", problems[i].name);
    for (const Score& score : scores[i]) {
      fmt::print(" {:.3f}{} |", score.ratio, score.fits ? "" : " (no fit)");
    }
    fmt::print("\n");
  }
}

void generalise(const Settings& settings) {
  std::vector<Entrant> entrants;
  for (const std::string& text : settings.placers) entrants.push_back(parse(text));
  const std::vector<NamedProblem> problems =
      cross(list_models(settings.graphs), list_clusters(settings.clusters), settings.memory,
            settings.cores);
  std::vector<std::vector<Score>> scores(problems.size());
  parallel_for(problems.size(), settings.cores,
               [&](std::size_t i) { scores[i] = run_all(problems[i], entrants, settings.seeds); });
  fmt::print("{} cases, seeds: {}.\n\n", problems.size(), settings.seeds);
  print_summary(entrants, scores);
  if (settings.all) print_all(problems, entrants, scores);
}

}  // namespace

int main(int argc, char** argv) {
  emplace::cli::prepare_blas();
  Settings settings;
  CLI::App app("Policies on graphs that they may never have seen.");
  app.add_option("--graphs", settings.graphs, "As for emplace train")->required();
  app.add_option("--clusters", settings.clusters, "Likewise")->required();
  app.add_option("--memory", settings.memory, "Likewise")->delimiter(',');
  app.add_option("--placers", settings.placers,
                 "Each perhaps with @EVALUATIONS or @TIME, or after \"finished:\"")
      ->required();
  app.add_option("--seeds", settings.seeds, "Runs of each placer on each case, which are averaged")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--cores", settings.cores, "Cases side by side, each on one thread")
      ->capture_default_str();
  app.add_flag("--all", settings.all, "Print every case too");
  CLI11_PARSE(app, argc, argv);
  try {
    generalise(settings);
  } catch (const Error& error) {
    fmt::print(stderr, "generalise: {}\n", error.what());
    return 2;
  }
}
