// One model on several clusters, for those who choose hardware.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placer/run.h"

#include "run/assessment.h"
#include "run/partition.h"

namespace emplace {

// What is best on one cluster. Timelines are not kept.
struct ClusterRow {
  std::string cluster;
  DeviceId devices = 0;
  std::string why_nothing_fits;  // where that is proven; else:
  std::string placer;
  Nanoseconds time = 0;  // step time or period
  bool fits = false;
  LowerBound bound;
  double fullest_memory = 0;  // of the device nearest to its limit, 0..1 and above
  Rates rates;
  // Tensors divided, by a quick method; with its own rates.
  std::optional<WayToRun> in_parts;
  Rates rates_in_parts;
};

ClusterRow make_row(const Assessment& answer, const RunResult& run,
                    const std::optional<WayToRun>& in_parts, const StepTerms& terms);
ClusterRow make_hopeless_row(const Cluster& cluster, const std::string& why);

// A table in the order of the clusters, and which of them is fastest and which cheapest.
std::string to_text(const std::vector<ClusterRow>& rows, const Objective& objective);
std::string to_json(const std::vector<ClusterRow>& rows, const Objective& objective);

}  // namespace emplace
