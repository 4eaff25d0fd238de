// The simulator as something to learn from: placements in, values out, many at a time; and what is
// known of a problem as arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <emplace/problem.h>
#include <emplace/simulate.h>

namespace emplace {

// How much there is to decide about.
struct ProblemSize {
  OpId ops = 0;
  GroupId groups = 0;  // of ops that must share a device
  DeviceId devices = 0;
};
ProblemSize size_of(const Problem& problem);
// The group of every op.
std::vector<GroupId> groups_of(const Problem& problem);

// Groups are what is decided about: here, a placement is a device for each of them.
class Environment {
 public:
  explicit Environment(const std::shared_ptr<const Problem>& problem,
                       const Objective& objective = {});

  const std::shared_ptr<const Problem>& problem() const;
  // Values of placements that lie one after the other, devices by group, on several threads; a
  // value for each. Throws an Error that names the placement and the op when one is not valid.
  void evaluate(std::span<const std::int32_t> devices, std::span<StepValue> values,
                int threads = 1) const;
  std::int64_t evaluations() const;
  // A device for each op, from a device for each group.
  Placement placement(std::span<const std::int32_t> devices) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// What is known of a problem before anything is placed, as arrays.
struct GroupFeatures {
  std::vector<std::string> names = {};      // of the first op of each group
  std::vector<std::string> types = {};      // of its op that takes the longest
  std::vector<std::string> modules = {};    // of the same op
  std::vector<std::int32_t> ops = {};       // how many
  std::vector<Nanoseconds> durations = {};  // [group][device], all its ops together
  std::vector<std::uint8_t> allowed = {};   // [group][device]
  std::vector<Bytes> resident = {};         // what it holds for the whole step
  std::vector<Bytes> outputs = {};          // what its ops write
  // Where its first op is along the graph: how long what comes before takes, and how long
  // it takes from there to the end, by the ops' mean durations and without transfers.
  std::vector<Nanoseconds> before = {};
  std::vector<Nanoseconds> after = {};
  // Tensors from one group to another: each once for every group that reads it.
  std::vector<std::int32_t> edge_from = {};
  std::vector<std::int32_t> edge_to = {};
  std::vector<Bytes> edge_bytes = {};
};
GroupFeatures features_of(const Problem& problem);

}  // namespace emplace
