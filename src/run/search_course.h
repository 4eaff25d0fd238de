// How a search went, for whoever draws it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <emplace/search.h>

#include "placer/run.h"

namespace emplace {

// How far a run had come when.
struct CoursePoint {
  double seconds = 0;  // since the run began
  std::int64_t evaluations = 0;
  std::optional<Evaluation> best = std::nullopt;
  Nanoseconds bound = 0;  // 0: none
};

struct SearchCourse {
  PlacerRun run;
  std::vector<CoursePoint> points = {};    // where the best or the bound changed, and the end
  std::vector<TrainingPoint> rounds = {};  // of one that learns
};

}  // namespace emplace
