// What the papers on placement claim, as data: on which workloads, who against whom, and within
// which bounds a ratio must lie; and the tables and sweeps that they show. Nothing here is chosen
// by what comes out.
#pragma once

#include <string>
#include <vector>

#include "reproduce/workloads.h"

namespace emplace::bench {

// Whose settings the published systems run with.
enum class Version { kPaper, kEmplace };
std::string to_string(Version version);

// What is compared of two placers. All but the first are counted until a run is as good as the
// worse of the two placers' median results; a run that never is counts as one that was at its end.
enum class Measure {
  kStepTime,
  kEvaluations,
  kAgentSeconds,     // processor time of sampling and learning alone
  kMeasuredSeconds,  // what it would take with real steps: the agent, and 15 steps a placement
};

// Who runs is a placer's spec, with "@pct" for a scheduler.
// That left's measure over right's, in the geometric mean over the workloads, is in an interval.
struct Statement {
  std::string text;
  Measure measure = Measure::kStepTime;
  std::string left;
  std::string right;
  std::vector<std::string> workloads;
  double least = 0;
  double most = 1;
};

struct Claim {
  std::string key;
  std::string text;
  std::string source;
  std::vector<Statement> statements;
};

// A table: step times of every entrant on every workload.
struct Grid {
  struct Column {
    std::string title;
    std::string entrant;
  };
  std::string key;
  std::string text;
  std::string source;
  std::vector<std::string> workloads;
  std::vector<Column> columns;
  bool until_best = false;  // also how many placements it took until the best
};

std::vector<Claim> claims(Version version);
std::vector<Grid> grids(Version version);

}  // namespace emplace::bench
