// The workloads on which published placers and partitioners were measured: which model of the zoo,
// at which size, on which machine (docs/zoo.md has the same as a table).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace emplace::zoo {

struct PublishedWorkload {
  std::string system;    // "Mars"
  std::string workload;  // as the paper calls it, with the number of GPUs where there are several
  std::string model;     // "zoo:bert-base:batch=24,sequence=384"
  std::string cluster;   // a preset (docs/clusters.md)
  Bytes memory = 0;      // that the framework could use of each GPU
  std::int64_t parameters = 0;
  std::string source;
  std::string note;  // what the source does not say and was chosen here
};

// Grouped by system, each in the order of its paper.
const std::vector<PublishedWorkload>& published_workloads();
// Those of one system; throws an Error, which names the systems there are, for any other.
std::vector<PublishedWorkload> published_workloads_of(const std::string& system);

}  // namespace emplace::zoo
