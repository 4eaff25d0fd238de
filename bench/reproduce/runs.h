// Runs of placers under a budget of evaluations, each on one thread, kept in a file so that what is
// done is not done again, and later runs add seeds to it.
#pragma once

#include <cstddef>
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
  std::string code = {};     // the commit that it ran with
  std::string kernels = {};  // and the kernels (reproduce/kernels.h); older runs do not say
  std::vector<RunProgress> history = {};

  // "0a1b2c3 (Haswell/avx2)".
  std::string origin() const;
};

// A workload, ready to run on.
struct Stage {
  std::shared_ptr<const Simulator> simulator;
  Nanoseconds single = 0;  // step time on one device, whether it fits or not
};
Stage make_stage(const Workload& workload);

LearningRun run(const Stage& stage, const RunKey& key);

// Runs, and the file that they are kept in, to which several processes may add.
class RunStore {
 public:
  // Reads what the file has, where it exists, and changes nothing; an empty path: nothing is kept.
  // `code` and `kernels` are of the runs that are added.
  explicit RunStore(std::string path, std::string code = "", std::string kernels = "");

  // Reads what others have added since.
  void refresh();
  const LearningRun* find(const RunKey& key) const;
  // With this store's code and kernels, or as it is. What another process has added first stays.
  void add(const RunKey& key, LearningRun run);
  void keep(const RunKey& key, LearningRun run);

 private:
  void read_new_lines();
  void append(const std::string& line);

  std::string path_;
  std::string code_;
  std::string kernels_;
  mutable std::mutex mutex_;
  std::map<RunKey, LearningRun> runs_;
  std::size_t read_ = 0;  // bytes of the file, all of them whole lines
};

}  // namespace emplace::bench
