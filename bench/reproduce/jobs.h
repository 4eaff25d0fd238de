// What is still to be run, and running it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reproduce/runs.h"
#include "reproduce/tables.h"

namespace emplace::bench {

struct Job {
  std::string workload;
  RunKey key;
};

// What is not in the store, seed by seed, so that a run that is cut short has something of all.
// Placers without chance run once.
std::vector<Job> missing_jobs(const Entrants& entrants, int seeds,
                              std::optional<std::int64_t> evaluations, const RunStore& store);

// Adds each run to the store as soon as it ends, and says so on standard error. What another
// process has added to the store's file by then is not run again.
void run_jobs(const std::vector<Job>& jobs, const std::map<std::string, Stage>& stages, int cores,
              RunStore& store);

}  // namespace emplace::bench
