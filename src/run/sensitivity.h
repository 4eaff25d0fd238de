// Which resource of a cluster, doubled, or which further device would make a step how much faster.
#pragma once

#include <string>
#include <vector>

#include "placer/scheduler.h"

#include "run/assessment.h"

namespace emplace {

struct Sensitivity {
  std::string resource;  // as in ClusterScale; or "devices"
  double factor = 2;     // that it was scaled by; of devices: how many times as many there are
  std::string what;      // for people: "twice the memory", "one more p100"
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
// Without a search: the same placement on each. Another device would be of no use to it.
Sensitivities sensitivities_of_placement(const Assessment& answer);

}  // namespace emplace
