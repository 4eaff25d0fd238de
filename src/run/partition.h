// A model divided among devices, and what that is worth: against running it on one device, placing
// its ops whole, and the usual ways to divide it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <emplace/partition.h>

#include "tensor/evaluate.h"
#include "tensor/step_bound.h"
#include "tensor/topology.h"

#include "run/rates.h"
#include "run/search_course.h"

namespace emplace {

// One way to run the model.
struct WayToRun {
  std::string name;
  Nanoseconds step = 0;
  std::vector<Bytes> peaks;  // by device
  Bytes moved = 0;
  bool fits = false;
  // Of a division: how many devices compute the same, on average over the time of the forward and
  // the backward pass. 1 where all is divided.
  double copies = 1;
  int alike = 1;  // machines that all do the same, as links between them are slow
  std::optional<AddedCost> added_cost = std::nullopt;  // of a division by costs
  // Among how many devices it exchanges what was not measured, where collectives are.
  std::set<int> unmeasured = {};

  Bytes largest_peak() const;
  int devices() const;  // that it uses
};

struct PartitionAnswer {
  std::string method;
  std::shared_ptr<const Problem> whole;  // as it was given
  std::shared_ptr<const Graph> graph;    // of the operators that are divided
  std::shared_ptr<const PartitionInput> input;
  std::optional<WorkerDevices> on;  // who shares the work
  Plan plan;
  PlanOutcome outcome;
  WayToRun chosen;
  std::vector<WayToRun> others;           // what other methods make of it
  std::vector<std::string> not_compared;  // what there was no time for
  std::vector<std::string> too_large;     // those whose divided graph has too many ops
  // Those whose plan cannot be made a graph, which is a defect of ours, with the reason.
  std::vector<std::pair<std::string, std::string>> failed;
  // Where fewer devices are as fast, or faster, as those of one machine may be: by a quick method,
  // or a search on one machine.
  std::optional<WayToRun> on_fewer;
  bool fewer_left_out = false;         // there was no time for any of them
  SearchCourse course = {};            // of the method, as far as it evaluated plans
  bool collectives_measured = false;   // then not all of them take what the links say
  StepBound bound;                     // no division among the workers takes less
  std::optional<WayToRun> one_device;  // the best; nothing where no device may run every op
  std::string one_device_name;
  WayToRun placed;  // whole ops, by `auto`
  // Operators that every worker computes whole, for want of a description or of attributes.
  std::vector<std::string> undivided;
  std::vector<std::string> unattributed;
  StepTerms terms;  // what a step is worth: what the graph says, unless set

  // Of all divisions that were compared; and of those among all workers.
  const WayToRun& best_on_all() const;
  const WayToRun& best_in_parts() const;
  const Cluster& cluster() const { return whole->cluster(); }
  const Workers& workers() const { return on->workers; }
  const std::vector<DeviceId>& devices() const { return on->devices; }  // by worker
};

// `on_phase` is told what is being done, from the thread that does it; may be empty. Throws an
// Error when the problem has rules or fused ops, which are for whole ops, or too few devices.
PartitionAnswer find_partition(const std::shared_ptr<const Problem>& problem,
                               const PartitionOptions& options,
                               const std::function<void(const std::string&)>& on_phase = {});

// What the quick methods (data-parallel, tofu) make of it, the better of them: a hint whether
// dividing tensors is worth a search. Nothing where they cannot be divided, or where that would
// take longer than the budget.
std::optional<WayToRun> quick_partition(const std::shared_ptr<const Problem>& problem,
                                        const Budget& budget);

// On the devices that the way uses.
Rates rates_of(const WayToRun& way, const StepTerms& terms, const Cluster& cluster);

}  // namespace emplace
