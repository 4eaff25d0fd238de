// The papers' comparisons of learned placers, run again in simulation at equal numbers of evaluated
// placements; prints what docs/reproduction.md shows.
//
//   build/bench/reproduce --results reproduce.jsonl --cores 2 > table.md
//   build/bench/reproduce --quick
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/units.h"

#include "placer/placer.h"

#include "placers/all.h"

#include "cli/blas.h"
#include "support/claims.h"
#include "support/learning_runs.h"
#include "support/verdicts.h"

namespace {

using namespace emplace;
using namespace emplace::bench;

struct Settings {
  bool quick = false;
  int seeds = 5;
  std::int64_t evaluations = 2400;  // as Post had
  int cores = hardware_threads();
  std::vector<std::string> keys;  // of claims; all where there is none
  std::string results;

  void make_quick() {
    seeds = 3;
    evaluations = 240;
  }
};

std::vector<Claim> chosen_claims(const Settings& settings) {
  std::vector<Claim> chosen;
  for (const Claim& claim : claims()) {
    const bool wanted =
        settings.keys.empty() ||
        std::find(settings.keys.begin(), settings.keys.end(), claim.key) != settings.keys.end();
    if (wanted) chosen.push_back(claim);
  }
  if (chosen.empty())
    fail_option("--claims {}: there is none of these", fmt::join(settings.keys, ","));
  return chosen;
}

// Who runs on what, each once however many statements ask for it; in the order of the workloads.
using Entrants = std::map<std::string, std::set<std::string>>;

Entrants entrants_of(const std::vector<Claim>& chosen) {
  Entrants entrants;
  for (const Claim& claim : chosen) {
    for (const Statement& statement : claim.statements) {
      for (const std::string& name : statement.workloads) {
        entrants[name].insert({statement.left, statement.right});
      }
    }
  }
  for (const auto& [name, placers] : entrants) {
    for (const std::string& placer : placers) all_placers().make(MethodSpec::parse(placer));
  }
  return entrants;
}

struct Job {
  std::string workload;
  RunKey key;
};

// What is not in the store, seed by seed, so that a run that is cut short has something of all.
// Placers without chance run once.
std::vector<Job> missing_jobs(const Entrants& entrants, const Settings& settings,
                              const RunStore& store) {
  std::vector<Job> jobs;
  for (int seed = 1; seed <= settings.seeds; ++seed) {
    for (const auto& [name, placers] : entrants) {
      for (const std::string& placer : placers) {
        const RunKey key = run_key(workload(name), placer, seed, settings.evaluations);
        const bool repeats = static_cast<std::uint64_t>(seed) != key.seed;
        if (!repeats && store.find(key) == nullptr) jobs.push_back({name, key});
      }
    }
  }
  return jobs;
}

void run_jobs(const std::vector<Job>& jobs, const std::map<std::string, Stage>& stages, int cores,
              RunStore& store) {
  std::atomic<std::size_t> next{0};
  const auto work = [&](std::size_t) {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      const Job& job = jobs[i];
      const LearningRun result = run(stages.at(job.workload), job.key);
      fmt::print(stderr, "[{}/{}] {} by {} with seed {}: {}{} after {:.0f} s\n", i + 1, jobs.size(),
                 job.workload, job.key.placer, job.key.seed, format_time(result.step),
                 result.fits ? "" : " (does not fit)", result.seconds);
      store.add(job.key, result);
    }
  };
  parallel_for(static_cast<std::size_t>(cores), cores, work);
}

std::string format_interval(const Interval& interval) {
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", interval.mean, interval.low, interval.high);
}

std::string format_claimed(const Statement& statement) {
  if (statement.least > 0) return fmt::format("{:.2f} to {:.2f}", statement.least, statement.most);
  return fmt::format("at most {:.2f}", statement.most);
}

void print_verdicts(const std::vector<Claim>& chosen, const Evidence& evidence) {
  std::string details;
  fmt::print("| claim | source | verdict |\n|---|---|---|\n");
  for (const Claim& claim : chosen) {
    std::vector<Verdict> verdicts;
    details += fmt::format("\n### {}\n{} ({}).\n\n", claim.key, claim.text, claim.source);
    details +=
        "| statement | on | ratio of | measured, 95 % interval | claimed | verdict |\n"
        "|---|---|---|---|---|---|\n";
    for (const Statement& statement : claim.statements) {
      const Interval ratio = evidence.ratio(statement);
      verdicts.push_back(judge(statement, ratio));
      const char* measure = statement.measure == Measure::kStepTime      ? "step times"
                            : statement.measure == Measure::kEvaluations ? "placements"
                                                                         : "seconds";
      details += fmt::format("| {} | {} | {} | {} | {} | {} |\n", statement.text,
                             fmt::join(statement.workloads, ", "), measure, format_interval(ratio),
                             format_claimed(statement), to_string(verdicts.back()));
    }
    fmt::print("| {}: {} | {} | **{}** |\n", claim.key, claim.text, claim.source,
               to_string(judge(verdicts)));
  }
  fmt::print("{}", details);
}

std::string result_row(const Evidence& evidence, const std::string& name,
                       const std::string& placer) {
  std::vector<double> logarithms;
  int fitting = 0;
  double seconds = 0;
  double policy = 0;
  double learner = 0;
  double waiting = 0;
  for (int seed = 1; seed <= evidence.seeds(); ++seed) {
    const LearningRun& one = evidence.run(name, placer, seed);
    fitting += one.fits ? 1 : 0;
    seconds += one.seconds;
    policy += one.policy_seconds;
    learner += one.learner_seconds;
    waiting += one.waiting_seconds;
  }
  const std::vector<double> times = evidence.step_times(name, placer);
  for (const double time : times) logarithms.push_back(std::log(time));
  const double total = std::max(seconds, 1e-9);
  const bool learns = policy + learner > 0;
  return fmt::format("| {} | {} | {} | {:.3f} | {} of {} | {:.1f} | {} |\n", name, placer,
                     format_interval(geometric_interval(logarithms)),
                     *std::min_element(times.begin(), times.end()), fitting, evidence.seeds(),
                     seconds / evidence.seeds(),
                     learns ? fmt::format("{:.0f} / {:.0f} / {:.0f} %", 100 * policy / total,
                                          100 * learner / total, 100 * waiting / total)
                            : "");
}

void print_results(const Entrants& entrants, const Evidence& evidence) {
  fmt::print(
      "\n### Results\nStep times over those on one device.\n\n"
      "| workload | placer | mean, 95 % interval | best | fit | seconds a run | policy / learner / "
      "waiting for evaluations |\n|---|---|---|---|---|---|---|\n");
  for (const Workload& one : workloads()) {
    const auto entry = entrants.find(one.name);
    if (entry == entrants.end()) continue;
    for (const std::string& placer : entry->second) {
      fmt::print("{}", result_row(evidence, one.name, placer));
    }
  }
}

void print_workloads(const Entrants& entrants, const Evidence& evidence) {
  fmt::print(
      "\n### Workloads\n| name | model | ops | devices | memory of each | one device |\n"
      "|---|---|---|---|---|---|\n");
  for (const Workload& one : workloads()) {
    if (!entrants.contains(one.name)) continue;
    const Stage& stage = evidence.stage(one.name);
    fmt::print("| {} | `{}` | {} | {} | {} % of what one would need | {} |\n", one.name, one.model,
               format_count(stage.simulator->problem().num_ops()), one.devices, one.memory_percent,
               format_time(stage.single));
  }
}

void reproduce(const Settings& settings) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Claim> chosen = chosen_claims(settings);
  const Entrants entrants = entrants_of(chosen);
  std::map<std::string, Stage> stages;
  for (const auto& [name, placers] : entrants) stages[name] = make_stage(workload(name));
  RunStore store(settings.results);
  const std::vector<Job> jobs = missing_jobs(entrants, settings, store);
  run_jobs(jobs, stages, settings.cores, store);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;

  const Evidence evidence(std::move(stages), store, settings.seeds, settings.evaluations);
  fmt::print("{} evaluated placements a run, {} seeds; {} runs took {:.0f} min on {} cores.\n\n",
             format_count(settings.evaluations), settings.seeds, jobs.size(), elapsed.count() / 60,
             settings.cores);
  print_verdicts(chosen, evidence);
  print_results(entrants, evidence);
  print_workloads(entrants, evidence);
}

}  // namespace

int main(int argc, char** argv) {
  emplace::cli::prepare_blas();
  CLI::App app("The papers' comparisons of learned placers, run again.");
  Settings settings;
  Settings quick;
  quick.make_quick();
  app.add_flag("--quick", settings.quick,
               fmt::format("{} seeds of {} evaluations", quick.seeds, quick.evaluations));
  CLI::Option* seeds = app.add_option("--seeds", settings.seeds, "Runs of each placer")
                           ->check(CLI::Range(1, 1000))
                           ->capture_default_str();
  CLI::Option* evaluations =
      app.add_option("--evaluations", settings.evaluations, "Placements that each run evaluates")
          ->check(CLI::PositiveNumber)
          ->capture_default_str();
  app.add_option("--cores", settings.cores, "Runs side by side, each on one thread")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--claims", settings.keys, "Only these, such as A3,A5")->delimiter(',');
  app.add_option("--results", settings.results,
                 "Keep runs here, and do not repeat those that are there; remove it when placers "
                 "have changed")
      ->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  if (settings.quick) {
    if (seeds->empty()) settings.seeds = quick.seeds;
    if (evaluations->empty()) settings.evaluations = quick.evaluations;
  }
  try {
    reproduce(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "reproduce: {}\n", error.what());
    return 2;
  }
  return 0;
}
