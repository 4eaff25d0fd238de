#include "reproduce/request.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"

namespace emplace::bench {
namespace {

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::vector<Version> chosen_versions(const std::vector<std::string>& wanted) {
  std::vector<Version> chosen;
  for (const auto& [name, version] :
       {std::pair{"paper", Version::kPaper}, std::pair{"emplace", Version::kEmplace}}) {
    if (wanted.empty() || has(wanted, name)) chosen.push_back(version);
  }
  return chosen;
}

}  // namespace

Program program_of(const ProgramRequest& request) {
  std::vector<std::string> known;
  const auto wanted = [&](const std::string& key) {
    if (!has(known, key)) known.push_back(key);
    return request.keys.empty() || has(request.keys, key);
  };
  Program program;
  for (const Version version : chosen_versions(request.versions)) {
    Part part{.version = version};
    for (const Claim& claim : claims(version)) {
      if (wanted(claim.key)) part.claims.push_back(claim);
    }
    for (const Grid& grid : grids(version)) {
      if (wanted(grid.key)) part.grids.push_back(grid);
    }
    if (!part.claims.empty() || !part.grids.empty()) program.push_back(std::move(part));
  }
  for (const std::string& key : request.keys) {
    if (!has(known, key)) {
      fail_option("--claims: there is no '{}'; expected some of: {}", key, fmt::join(known, ", "));
    }
  }
  return program;
}

void check_workloads(const ProgramRequest& request, const Entrants& entrants) {
  for (const std::string& name : request.runs_on) {
    if (entrants.contains(name)) continue;
    std::vector<std::string> names;
    for (const auto& [known, placers] : entrants) names.push_back(known);
    fail_option("--workload: nothing of what was asked for runs on '{}'; expected some of: {}",
                name, fmt::join(names, "; "));
  }
}

std::vector<Job> jobs_now(const ProgramRequest& request, std::vector<Job> jobs) {
  if (request.runs_on.empty()) return jobs;
  std::erase_if(jobs, [&](const Job& job) { return !has(request.runs_on, job.workload); });
  return jobs;
}

}  // namespace emplace::bench
