// Tensors divided among devices, and strategies selected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <emplace/problem.h>
#include <emplace/search.h>

namespace emplace {

struct PartitionOptions {
  std::string method = "search";  // a spec of a partition method
  int workers = 0;                // that share the work: the fastest; 0: all that are no CPUs
  Budget budget = {};
  std::uint64_t seed = 1;
  // Into how many searches the evaluations of the budget are divided, of which the best plan
  // counts; 0: one, or as many as ranks.
  int islands = 0;
  // Devices compute so many times as slowly while they send or receive; all steps count that.
  double overlap_slowdown = 1;
  // A file of measured collectives (docs/partitioning.md), which take what they took. Empty: links
  // alone say what moving costs.
  std::string collectives = {};
  ProgressListener on_progress = {};
};

// How every tensor and operator of a model is divided, and what that is worth. Cheap to copy.
class Partition {
 public:
  Nanoseconds step() const;
  bool fits() const;
  Bytes moved() const;  // between devices, in a step
  // What a user should do, with the figures: divide, place whole ops, or use one device.
  std::string verdict() const;
  std::string to_text() const;
  std::string to_json() const;
  // The plan; the divided graph and its placement, which can be simulated and run.
  std::string plan_json() const;
  // Along which dimensions every layer's tensors are cut, as SVG.
  std::string picture_svg() const;
  std::shared_ptr<const Problem> divided() const;
  const std::vector<DeviceId>& placement() const;

  struct State;
  explicit Partition(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

// Throws an Error when the problem has rules or fused ops, which are for whole ops, or too few
// devices.
Partition partition(const std::shared_ptr<const Problem>& problem,
                    const PartitionOptions& options = {});

// One strategy for each node of a strategy-selection problem (docs/selection.md).
struct SelectOptions {
  Budget budget = {};
  std::uint64_t seed = 1;
  ProgressListener on_progress = {};
};
struct Selection {
  std::vector<std::int32_t> strategies;  // by node
  std::int64_t cost = 0;
  std::int64_t lower_bound = 0;
  bool feasible = false;
  bool proven = false;  // that nothing is better, or feasible
};
// A problem of the contest IOPDDL (JSON, also gzipped).
Selection select(const std::string& problem_file, const SelectOptions& options = {});

}  // namespace emplace
