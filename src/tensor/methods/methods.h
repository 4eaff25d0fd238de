// Ways to find a plan. Each is a function from a request to a plan; the table in methods.cc names
// them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

#include "cost/problem.h"

#include "tensor/partition_problem.h"
#include "tensor/plan.h"

namespace emplace {

struct PartitionRequest {
  const PartitionInput& input;
  const Workers& workers;
  // The workers' devices, and how long ops last there when they are whole (of the input's graph).
  const Problem& problem;
  std::vector<DeviceId> devices;
  CostMode cost = CostMode::kAuto;            // how long pieces last
  double seconds = 30;                        // for searches that do not end by themselves
  std::function<bool()> cancelled = nullptr;  // may be empty
};

struct PartitionMethod {
  std::string_view name;
  std::string_view summary;
  std::string_view reference;
  Plan (*run)(const PartitionRequest&);
};

// Our search first, then the published methods, then what they are compared with.
std::span<const PartitionMethod> partition_methods();
// Throws an Error when there is none of that name.
const PartitionMethod& find_partition_method(std::string_view name);

// ---- recursion.cc

// Wang et al. 2019: level by level, each time the cuts that move the fewest bytes.
Plan tofu(const PartitionRequest& request);
// The same, but by time on the cluster's links.
Plan recursive_by_time(const PartitionRequest& request);

// ---- joint.cc

// Jia et al. 2018: the output dimensions of every operator on all levels at once, by the time of
// computing, synchronising weights and moving tensors.
Plan optcnn(const PartitionRequest& request);
// All variables on all levels at once, weights whole where that pays, by time. What the workers
// keep (weights, their gradients and state, what the backward pass reads) stays within the limit,
// if there is one and that is possible.
Plan joint_search(const PartitionRequest& request, std::optional<Bytes> memory_limit,
                  const std::vector<Plan>& starts);

// ---- baselines.cc

// Examples are divided, weights are everywhere, their gradients are added up.
Plan data_parallel(const PartitionRequest& request);
// Every tensor by its first dimension.
Plan all_row(const PartitionRequest& request);
// Every tensor by one dimension, the same on all levels, chosen by dynamic programming.
Plan equal_chop(const PartitionRequest& request);
// One tensor after the other, the largest first, each by the dimension that then moves least.
Plan spartan(const PartitionRequest& request);

// ---- search.cc

// The best of what the others find, by the simulator's clock, as far as it fits.
Plan search(const PartitionRequest& request);

// How long the slowest worker's piece of the op takes.
std::int64_t piece_time(const PartitionRequest& request, PartitionProblem& problem, ClassId op,
                        const Cuts& cuts);

}  // namespace emplace
