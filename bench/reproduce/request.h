// What somebody asks for: some of the claims and tables, in one version or both, and what of it is
// to be run now.
#pragma once

#include <string>
#include <vector>

#include "reproduce/jobs.h"
#include "reproduce/tables.h"

namespace emplace::bench {

struct ProgramRequest {
  std::vector<std::string> keys = {};      // of claims and tables; all where there is none
  std::vector<std::string> versions = {};  // paper, emplace; both where there is none
  std::vector<std::string> runs_on = {};   // workloads that are run now; all where there is none
};

// What is asked for, in each version. Throws an Error for a key that none of these versions has:
// misspelt, it would be left out without a word.
Program program_of(const ProgramRequest& request);
// Throws an Error for a workload on which nothing of what was asked for runs.
void check_workloads(const ProgramRequest& request, const Entrants& entrants);
// Those on the workloads that are run now.
std::vector<Job> jobs_now(const ProgramRequest& request, std::vector<Job> jobs);

}  // namespace emplace::bench
