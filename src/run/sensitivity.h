// Which resource of a cluster, doubled, would make a step how much faster.
#pragma once

#include <string>
#include <vector>

#include "placer/scheduler.h"

#include "run/assessment.h"

namespace emplace {

struct Sensitivity {
  std::string resource;  // as in ClusterScale
  double factor = 2;     // that it was scaled by
  Evaluation value;      // step time, or period, and what does not fit
};

struct Sensitivities {
  Evaluation now;                 // the best known of the cluster as it is
  std::vector<Sensitivity> list;  // what gains most first
};

// Searches again on each changed cluster, from the answer on, under a budget for each. What is
// found on the way and is better on the cluster as it is counts there, too. All of it in the order
// of the scheduler.
Sensitivities sensitivities(const Assessment& answer, const Budget& each,
                            const std::string& scheduler = std::string(kOwnSchedule));

}  // namespace emplace
