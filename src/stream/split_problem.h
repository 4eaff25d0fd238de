// What contiguous splits are made of: units, what a part of them costs a device, and merging them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "stream/model.h"

namespace emplace {

struct SplitClass {
  std::vector<DeviceId> devices;  // that differ in nothing
  Bytes capacity = 0;
  std::vector<Nanoseconds> time;    // by unit; kNever where it may not be
  std::vector<Nanoseconds> weight;  // by net: what it costs where it is cut
};

// How communication counts in a part's load.
enum class SplitRule {
  kAdd,  // time + the weights of all nets that are cut
  kMax,  // the longest of: time, what leaves, what arrives
};

struct SplitProblem {
  SplitRule rule = SplitRule::kAdd;
  std::vector<SplitClass> classes;
  std::vector<Bytes> memory;  // by unit
  std::vector<Bytes> temp;    // by unit: the largest one of a part counts
  Csr<std::uint32_t> pins;    // by net: two or more distinct units, the source first
  Csr<std::uint32_t> nets;    // by unit

  std::uint32_t num_units() const { return static_cast<std::uint32_t>(memory.size()); }
};

// Where a stream's loads are not sums over one device alone, as links differ in speed or channels
// have loads, a split minimises an estimate of its period.
enum class SplitEstimate {
  kLeast,    // at most the true period of the split: the fastest links, no channels
  kTypical,  // mean links; what leaves and what arrives is all on one channel
};
// Whether kLeast is the period itself, and not less.
bool least_is_exact(const StreamModel& model);

// With the model's items as units, a stream's memory, and of the devices only these.
SplitProblem make_split_problem(const StreamModel& model, std::span<const DeviceId> devices,
                                SplitEstimate estimate);

// With each of `num_merged` sets of units as one: `merged_of` says in which a unit is.
SplitProblem merge_units(const SplitProblem& problem, std::span<const std::uint32_t> merged_of,
                         std::uint32_t num_merged);

// Sets of units that follow each other in `order`, `most` at the most, in order. By unit, its set.
std::vector<std::uint32_t> merge_into_runs(const SplitProblem& problem,
                                           std::span<const std::uint32_t> order,
                                           std::uint32_t most);

}  // namespace emplace
