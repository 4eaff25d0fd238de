// Runs of placers under a budget of evaluations, each on one thread, kept in a file so that what is
// done is not done again, and later runs add seeds to it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

#include "sim/simulator.h"

#include "placer/run.h"

#include "io/append_file.h"
#include "reproduce/workloads.h"

namespace emplace::bench {

struct RunKey {
  std::string workload;
  std::string placer;  // a spec, with "@pct" for a scheduler
  std::uint64_t seed = 1;
  std::int64_t evaluations = 0;

  friend auto operator<=>(const RunKey&, const RunKey&) = default;
};

// "mite@pct": a placer, and where there is one a scheduler.
PlacerRun parse_entrant(const std::string& text);

// The seed is 1 for placers without chance. `evaluations` replace the workload's own.
RunKey run_key(const Workload& workload, const std::string& entrant, int seed,
               std::optional<std::int64_t> evaluations);

// The best so far, after so much.
struct RunProgress {
  std::int64_t evaluations = 0;
  double agent_seconds = 0;
  double measured_seconds = 0;
  Nanoseconds step = 0;
  bool fits = false;
};

struct LearningRun {
  Nanoseconds step = 0;
  bool fits = false;
  std::int64_t evaluations = 0;
  double seconds = 0;
  // Processor time of the thread that the placer runs on: of a placer that learns, all but the
  // evaluations, whatever else the machine does.
  double agent_seconds = 0;
  // The agent's time and what its placements would take to measure (TrainingPoint); 0 of placers
  // that do not learn.
  double measured_seconds = 0;
  // In the last round, where the placer learns groups; else 0.
  double groups_used = 0;
  std::string code = {};  // the commit that it ran with
  std::vector<RunProgress> history;
};

// A workload, ready to run on.
struct Stage {
  std::shared_ptr<const Simulator> simulator;
  Nanoseconds single = 0;  // step time on one device, whether it fits or not
};
Stage make_stage(const Workload& workload);

LearningRun run(const Stage& stage, const RunKey& key);

class RunStore {
 public:
  // Reads what the file has, where it exists, and appends to it; an empty path: nothing is kept.
  // `code` is the commit of the runs that are added.
  explicit RunStore(const std::string& path, std::string code = "");

  const LearningRun* find(const RunKey& key) const;
  // With this store's code, or as it is.
  void add(const RunKey& key, LearningRun run);
  void keep(const RunKey& key, LearningRun run);

 private:
  std::string code_;
  mutable std::mutex mutex_;
  std::map<RunKey, LearningRun> runs_;
  std::optional<AppendFile> file_;
};

}  // namespace emplace::bench
