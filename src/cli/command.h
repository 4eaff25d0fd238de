// What the sub-commands share. One file a sub-command; each adds itself to the application and runs
// when it was chosen. Only this folder prints, and only main decides the exit code.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cost/problem.h"

#include "sim/objective.h"

#include "io/readers.h"
#include "search/budget.h"

namespace emplace::cli {

inline constexpr int kExitFine = 0;
inline constexpr int kExitNothingFits = 1;
inline constexpr int kExitBadInput = 2;

// The exit code that the chosen command left, and whether Ctrl-C was pressed.
struct Session {
  int exit_code = kExitFine;
  std::atomic<bool> cancelled{false};
};

// A sub-command's options live as long as the application, shared with its callback.
void add_place(CLI::App& app, Session& session);
void add_simulate(CLI::App& app, Session& session);
void add_compare(CLI::App& app, Session& session);
void add_list(CLI::App& app, Session& session);
void add_cluster(CLI::App& app, Session& session);
void add_export(CLI::App& app, Session& session);
void add_profile_fit(CLI::App& app, Session& session);
void add_partition(CLI::App& app, Session& session);
void add_train(CLI::App& app, Session& session);
void add_zoo(CLI::App& app, Session& session);

// --training, --optimizer, --colocate-gradients, --recompute: how a model becomes a training step.
struct TrainingArguments {
  bool training = false;
  std::string optimizer;
  bool colocate_gradients = false;
  std::vector<std::string> recompute;

  // --training itself is not for commands that only take zoo models.
  void add_to(CLI::App& command, bool with_training = true);
  // The first option that only a training step has, as it was written; empty when there is none.
  std::string first_given() const;
  // Throws an Error when such an option is there and the model is no training step.
  Model read(const std::string& model, ReadOptions options = {}) const;
};

// A problem, and how it was compiled.
struct LoadedProblem {
  std::shared_ptr<const Problem> problem;
  CompileOptions options;
};

// MODEL, --cluster, --kinds, --cost, --fuse, --dim, --pin, --forbid: what nearly every command
// starts from.
struct ProblemArguments {
  std::string model;
  std::string cluster;
  std::string kinds;
  std::string cost = "auto";
  bool fuse = false;
  std::vector<std::string> dims;
  std::vector<std::string> pins;
  std::vector<std::string> forbidden;
  TrainingArguments training;

  void add_to(CLI::App& command, bool model_required = true);
  // The model alone.
  Model read() const;
  LoadedProblem load() const;
  // Whether --recompute could still be given.
  bool could_recompute() const;
};

// --objective and --overlap.
struct ObjectiveArguments {
  std::string objective = "latency";
  std::string overlap = "full";

  void add_to(CLI::App& command);
  bool throughput() const { return objective == "throughput"; }
  Overlap overlap_kind() const { return overlap == "none" ? Overlap::kNone : Overlap::kFull; }
  // Throws an Error when --overlap says something of a step.
  Objective make() const;
};

// --time, --evaluations, --threads.
struct BudgetArguments {
  std::string time;
  std::optional<std::int64_t> evaluations;
  int threads = 0;  // 0: as many as there are

  // `time_is_for`: what the time is shared by or given to, for the help.
  void add_to(CLI::App& command, const std::string& time_is_for);
  Budget make(const Session& session) const;
};

// "heft,metis(imbalance=1.1,method=kway)" at its top-level commas.
std::vector<std::string> split_specs(const std::string& text);

}  // namespace emplace::cli
