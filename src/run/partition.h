// A model divided among devices, and what that is worth: against running it on one device, placing
// its ops whole, and the usual ways to divide it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emplace/search.h>

#include "tensor/evaluate.h"
#include "tensor/topology.h"

#include "run/problem_request.h"

namespace emplace {

struct PartitionRequest {
  ProblemRequest problem;  // without rules and fusion, which are for whole ops
  std::string method = "search";
  int workers = 0;  // devices that share the work; 0: all that are no CPUs, or all if all are
  Budget budget = {};
  std::uint64_t seed = 1;
  // Told what is being done, from the thread that does it; may be empty.
  std::function<void(const std::string&)> on_progress = {};
};

// One way to run the model.
struct WayToRun {
  std::string name;
  Nanoseconds step = 0;
  std::vector<Bytes> peaks;  // by device
  Bytes moved = 0;
  bool fits = false;

  Bytes largest_peak() const;
};

struct PartitionAnswer {
  std::string method;
  std::shared_ptr<const Problem> whole;  // as it was given
  std::shared_ptr<const Graph> graph;    // of the operators that are divided
  std::shared_ptr<const PartitionInput> input;
  WorkerDevices workers;
  Plan plan;
  PlanOutcome outcome;
  WayToRun chosen;
  std::vector<WayToRun> others;        // other methods
  std::optional<WayToRun> one_device;  // the best; nothing where no device may run every op
  std::string one_device_name;
  WayToRun placed;                     // whole ops, by `auto`
  std::vector<std::string> undivided;  // operators that every worker computes whole

  const Cluster& cluster() const { return whole->cluster(); }
};

// Throws an Error when the request is for whole ops, or there are too few devices.
PartitionAnswer partition(const PartitionRequest& request);

}  // namespace emplace
