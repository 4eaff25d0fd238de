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

#include "sim/throughput.h"

#include "placer/budget.h"

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

// MODEL, --cluster, --cost, --dim: what nearly every command starts from.
struct ProblemArguments {
  std::string model;
  std::string cluster;
  std::string cost = "auto";
  std::vector<std::string> dims;

  void add_to(CLI::App& command);
  std::shared_ptr<const Problem> load() const;
};

// --objective and --overlap.
struct ObjectiveArguments {
  std::string objective = "latency";
  std::string overlap = "full";

  void add_to(CLI::App& command);
  bool throughput() const { return objective == "throughput"; }
  Overlap overlap_kind() const { return overlap == "none" ? Overlap::kNone : Overlap::kFull; }
};

// --time, --evaluations.
struct BudgetArguments {
  std::string time;
  std::optional<std::int64_t> evaluations;

  void add_to(CLI::App& command);
  Budget make(const Session& session) const;
};

// "heft,metis(imbalance=1.1,method=kway)" at its top-level commas.
std::vector<std::string> split_specs(const std::string& text);

}  // namespace emplace::cli
