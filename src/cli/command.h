// What the sub-commands share. One file a sub-command; each adds itself to the application and runs
// when it was chosen. Only this folder prints, and only main decides the exit code.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/search.h>

#include "cli/command_line.h"
#include "cli/what_if.h"
#include "dist/crew.h"
#include "dist/member.h"
#include "run/portfolio.h"
#include "run/problem_request.h"
#include "run/whole_modules.h"

namespace emplace::cli {

inline constexpr int kExitFine = 0;
inline constexpr int kExitNothingFits = 1;
inline constexpr int kExitBadInput = 2;

// The exit code that the chosen command left, whether Ctrl-C was pressed, and what was typed.
// Before there is something to end with an answer, Ctrl-C ends the program.
struct Session {
  int exit_code = kExitFine;
  bool output_failed = false;           // an output could not be written
  std::string command_line = {};        // so that a shell would take it
  std::vector<std::string> words = {};  // the same as it was given, without the program
  std::string_view build = {};          // of this program, which all ranks must be of
  // Where this process is one of several: what rank 0 has of the others, and they of it.
  dist::Crew* crew = nullptr;
  dist::Member* member = nullptr;
  int ranks_here = 1;        // on this machine
  int rank_here = 0;         // which of them this one is
  bool among_ranks = false;  // the process ends without tidying up
  bool helps = false;        // another process says what is wrong
  std::atomic<bool> cancelled{false};
  mutable std::atomic<bool> can_be_cancelled{false};
};

// A sub-command's options live as long as the application, shared with its callback.
void add_place(Command& root, Session& session);
void add_simulate(Command& root, Session& session);
void add_run(Command& root, Session& session);
void add_report(Command& root, Session& session);
void add_profile(Command& root, Session& session);
void add_compare(Command& root, Session& session);
void add_list(Command& root, Session& session);
void add_cluster(Command& root, Session& session);
void add_export(Command& root, Session& session);
void add_import(Command& root, Session& session);
void add_show(Command& root, Session& session);
void add_info(Command& root, Session& session);
void add_profile_fit(Command& root, Session& session);
void add_partition(Command& root, Session& session);
void add_select(Command& root, Session& session);
void add_train(Command& root, Session& session);
void add_zoo(Command& root, Session& session);
void add_completion(Command& root, const CommandLine& line);

// What shells offer where placers are asked for.
std::vector<std::string> placer_names();

// --training, --optimizer, --precision, --colocate-gradients, --recompute. `with_training`:
// --training itself is not for commands that only take zoo models.
void add_training_options(Command command, TrainingRequest& request, bool with_training = true);

// MODEL, --cluster, --kinds, --cost, --fuse, --in-place, --dim, --pin, --forbid, --modules,
// --granularity: what nearly every command starts from.
struct ProblemArguments {
  bool several_clusters = false;      // --cluster may be given more than once
  std::vector<std::string> clusters;  // where it may
  WhatIfArguments what_if;
  std::string cost = "auto";
  std::string in_place = "sums";
  std::vector<std::string> dims;
  std::vector<std::string> pins;
  std::vector<std::string> forbidden;
  std::string modules;
  std::string granularity;
  ProblemRequest request;  // the rest

  // Pins, fusion and modules kept whole are not offered where ops are divided, which refuses them
  // with a reason, or have their places.
  void add_to(Command command, bool hides_rules = false);
  // Throws an Error that names the option.
  ProblemRequest make() const;
  // Files that are read, or names of models and clusters that are none.
  std::vector<std::string> inputs() const;
};

// --overlap-slowdown, of commands that report one step.
void add_overlap_slowdown(Command command, double& factor, const std::string& what);
// "If computing is 1.13 times as slow ...: 210 ms instead of 200."
std::string slow_overlap_line(double factor, Nanoseconds slow, Nanoseconds step);

// MODEL, --dim, --batch and how it becomes a training step: of commands that need no cluster.
struct ModelArguments {
  ProblemArguments problem;  // of which only these are given

  void add_to(Command command);
  ProblemRequest make() const { return problem.make(); }
};

// The problem; what the model's user should know is printed.
LoadedProblem load_noted(const ProblemRequest& request);

// PLACEMENT and --scheduler.
struct SavedPlacementArguments {
  std::string path;
  std::string scheduler;

  void add_to(Command command);
  // Warns where the file was made for another graph.
  PlacementFile load(const Problem& problem) const;
};

// --devices, --use-cpu and --start.
struct SubsetArguments {
  int devices = 0;  // at most so many are used; 0: all
  bool use_cpu = false;
  std::vector<std::string> starts;

  void add_to(Command command);
  // `more`: other answers to begin from; `unasked`: of CPUs, without --use-cpu.
  SubsetProblems make(const std::shared_ptr<const Problem>& problem, const Objective& objective,
                      std::vector<Solution> more = {}, CpuUse unasked = CpuUse::kIfNeeded) const;
};

// --device, --curves; --checkpoint, --checkpoint-every, --resume.
struct LearningArguments {
  std::string checkpoint_every;
  LearningSettings settings;  // the rest

  // Checkpoints are for commands of which one run learns.
  void add_to(Command command, bool several_runs);
  LearningSettings make() const;
  // Without the files where they are another rank's.
  LearningSettings make(const Session& session) const;
  // What a run writes by them.
  std::vector<std::string> outputs() const;
};

// The files that placers are to read: policies.
std::vector<std::string> inputs_of_specs(const std::string& specs);

// --objective and --overlap.
struct ObjectiveArguments {
  std::string objective = "latency";
  std::string overlap = "full";

  void add_to(Command command);
  // Throws an Error when --overlap says something of a step.
  Objective make() const;
};

// --time, --evaluations, --threads.
struct BudgetArguments {
  std::string time;
  std::optional<std::int64_t> evaluations;
  int threads = 0;  // 0: as many as there are

  // `time_is_for`: what the time is shared by or given to, for the help.
  void add_to(Command command, const std::string& time_is_for);
  Budget make(const Session& session) const;
};

// --seed.
void add_seed(Command command, std::uint64_t& seed,
              const std::string& help = "Seed of all randomness");
// An option that names a file.
void add_file(Command command, const std::string& names, std::string& path,
              const std::string& help);
// --report. `what`: of what the page is.
void add_report_option(Command command, std::string& path, const std::string& what);
// --json.
void add_json(Command command, bool& json);

// With progress; shared with other ranks where the request has a crew.
PortfolioResult run_portfolio(const SubsetProblems& problems, PortfolioRequest request);

}  // namespace emplace::cli
