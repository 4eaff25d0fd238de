// What the papers on learned placement claim, as data: on which workloads, who against whom, and
// within which bounds a ratio must lie. Nothing here is chosen by what comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emplace::bench {

// A model on equal devices, each with a part of what the model needs on one device alone.
struct Workload {
  std::string name;
  std::string model;
  std::size_t devices = 4;
  std::int64_t memory_percent = 100;

  std::string description() const;
};

// What is compared of two placers. Both of the latter are counted until a run is as good as the
// worse of the two placers' median results; a run that never is counts as one that was at its end.
enum class Measure { kStepTime, kEvaluations, kSeconds };

// That left's measure over right's, in the geometric mean over the workloads, is in an interval.
struct Statement {
  std::string text;
  Measure measure = Measure::kStepTime;
  std::string left;  // specs of placers
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

const std::vector<Workload>& workloads();
const Workload& workload(const std::string& name);
const std::vector<Claim>& claims();

}  // namespace emplace::bench
