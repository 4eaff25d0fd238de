// What each group's device must hold at once, whatever the placement and the order: while one of
// its ops runs, what the group keeps for good, and the op's temporaries, outputs and inputs. In a
// stream everything that a group keeps and writes is there at once, with the largest of its
// temporaries. An input that the op writes over is not there beside what it writes. Where views may
// share memory only the largest counts, and what may already be the group's own is not counted
// again: the needs are at most the true ones, so a device that is too small by them is too small.
//
// `why_nothing_fits` is a proof when it speaks, and silence means nothing: one group against the
// largest device that it may use; all groups confined to a set of devices against the set's memory
// (as in Hall's theorem, but only for sets that some group has); and all that is alive at one
// moment against all memory together. O(edges log edges), and O(edges) for each of 16 moments.
// Ours.
#include "bound/memory.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/wide.h"

#include "bound/alive.h"

namespace emplace {
namespace {

// Memory that the op's device must hold while the op runs: what it keeps, its temporaries, what it
// writes and what it reads.
Bytes working_set(const Problem& problem, const Liveness& liveness, OpId op,
                  std::vector<std::pair<TensorId, Bytes>>& read) {
  const Graph& graph = problem.graph();
  // Views and sources pass through memory in no time, and several views may share what they alias.
  if (problem.fastest_duration(op) == 0) return problem.resident_bytes(op);
  Bytes bytes = problem.resident_bytes(op) + graph.temp_bytes(op);
  for (const TensorId tensor : graph.outputs(op)) bytes += graph.memory_bytes(tensor);
  // Views of one tensor may lie in the same memory, and what lasts may be the group's own.
  read.clear();
  for (const TensorId tensor : graph.inputs(op)) {
    const bool own = problem.group_of(graph.producer(tensor)) == problem.group_of(op);
    if ((own && liveness.lasts(tensor)) || liveness.overwrites(op, tensor)) continue;
    read.emplace_back(liveness.root(tensor), liveness.held(tensor));
  }
  std::sort(read.begin(), read.end());
  for (std::size_t i = 0; i < read.size(); ++i) {
    const bool largest = i + 1 == read.size() || read[i + 1].first != read[i].first;
    if (largest) bytes += read[i].second;
  }
  return bytes;
}

MemoryNeeds step_needs(const Problem& problem) {
  const Liveness liveness(problem);
  std::vector<std::pair<TensorId, Bytes>> read;
  MemoryNeeds result;
  result.of_group.resize(problem.num_groups());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const GroupId group = problem.group_of(op);
    // The rest of the group's resident memory is there too.
    const Bytes need = working_set(problem, liveness, op, read) +
                       problem.group_resident_bytes(group) - problem.resident_bytes(op);
    result.of_group[group] = std::max(result.of_group[group], need);
  }
  return result;
}

// All that the group's ops keep and write, and the largest of their temporaries.
MemoryNeeds stream_needs(const Problem& problem) {
  const Graph& graph = problem.graph();
  MemoryNeeds result;
  result.of_group.resize(problem.num_groups());
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    Bytes largest_temp = 0;
    for (const OpId op : problem.group_ops(group)) {
      result.of_group[group] += graph.persistent_bytes(op);
      largest_temp = std::max(largest_temp, graph.temp_bytes(op));
      if (graph.is_view(op)) continue;
      for (const TensorId tensor : graph.outputs(op)) {
        result.of_group[group] += graph.memory_bytes(tensor);
      }
    }
    result.of_group[group] += largest_temp;
  }
  return result;
}

}  // namespace

MemoryNeeds memory_needs(const Problem& problem, MemoryRule rule) {
  return rule == MemoryRule::kStep ? step_needs(problem) : stream_needs(problem);
}

namespace {

// Groups that may use only some devices, and all that they keep there for good.
class RestrictedGroups {
 public:
  RestrictedGroups(const Problem& problem, MemoryRule rule) : problem_(problem) {
    std::map<const DeviceId*, std::size_t> index;  // groups share their sets of devices
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      const auto devices = problem.allowed_devices(group);
      const auto [found, added] = index.try_emplace(devices.data(), kept_.size());
      if (added) kept_.push_back({devices});
      for (const OpId op : problem.group_ops(group)) {
        kept_[found->second].bytes += kept_by(op, rule);
      }
    }
  }

  std::optional<std::string> shortage(MemoryRule rule) const {
    constexpr std::size_t kMostSets = 64;  // every two are compared
    if (kept_.size() > kMostSets) return std::nullopt;
    for (const Kept& kept : kept_) {
      Wide needed = 0;
      for (const Kept& other : kept_) {
        if (std::includes(kept.devices.begin(), kept.devices.end(), other.devices.begin(),
                          other.devices.end())) {
          needed += other.bytes;
        }
      }
      Wide capacity = 0;
      for (const DeviceId device : kept.devices) {
        capacity += static_cast<Wide>(problem_.cluster().device(device).memory);
      }
      if (needed <= capacity) continue;
      const bool all = kept.devices.size() == problem_.num_devices();
      return describe_shortage(
          rule == MemoryRule::kStep ? "parameters and other memory that lasts the whole step"
                                    : "parameters and all tensors of a step in a stream",
          needed, capacity,
          all ? "all devices together have" : "the devices that may hold them have");
    }
    return std::nullopt;
  }

  static std::string describe_shortage(const std::string& what, Wide needed, Wide capacity,
                                       const char* who) {
    // What is needed is a sum that fits (compile checked it), and so is the smaller capacity.
    const auto bytes = [](Wide sum) { return format_bytes(static_cast<Bytes>(sum)); };
    return fmt::format("{} need {}; {} {}: {} short", what, bytes(needed), who, bytes(capacity),
                       bytes(needed - capacity));
  }

 private:
  struct Kept {
    std::span<const DeviceId> devices;
    Wide bytes = 0;
  };

  // A stream's temporaries are shared by a device's ops, so only what stays is summed.
  Wide kept_by(OpId op, MemoryRule rule) const {
    if (rule == MemoryRule::kStep) return static_cast<Wide>(problem_.resident_bytes(op));
    Bytes bytes = problem_.graph().persistent_bytes(op);
    if (problem_.graph().is_view(op)) return static_cast<Wide>(bytes);
    for (const TensorId tensor : problem_.graph().outputs(op)) {
      bytes += problem_.graph().memory_bytes(tensor);
    }
    return static_cast<Wide>(bytes);
  }

  const Problem& problem_;
  std::vector<Kept> kept_;  // by set of devices
};

std::optional<std::string> crowded_device(const Problem& problem, MemoryRule rule) {
  const Cluster& cluster = problem.cluster();
  const MemoryNeeds needs = memory_needs(problem, rule);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    DeviceId largest = problem.allowed_devices(group)[0];
    for (const DeviceId device : problem.allowed_devices(group)) {
      if (cluster.device(device).memory > cluster.device(largest).memory) largest = device;
    }
    const Bytes capacity = cluster.device(largest).memory;
    const Bytes need = needs.of_group[group];
    if (need <= capacity) continue;
    return fmt::format(
        "op '{}' and what must share its device need {} at once; the largest device that may hold "
        "them, '{}', has {}: {} short",
        problem.graph().op_name(problem.group_ops(group)[0]), format_bytes(need),
        cluster.device(largest).name, format_bytes(capacity), format_bytes(need - capacity));
  }
  return std::nullopt;
}

// While one op runs, all that was made before it and is needed later is somewhere.
std::optional<std::string> crowded_moment(const Problem& problem) {
  constexpr std::size_t kTries = 16;
  Wide capacity = 0;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    capacity += static_cast<Wide>(problem.cluster().device(device).memory);
  }
  const std::vector<AliveAt> moments = Liveness(problem).full_moments(kTries);
  if (moments.empty()) return std::nullopt;
  const AliveAt& alive = moments.front();
  Wide needed = static_cast<Wide>(alive.total());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    needed += static_cast<Wide>(problem.resident_bytes(op));
  }
  if (needed <= capacity) return std::nullopt;
  return RestrictedGroups::describe_shortage(
      fmt::format("parameters and what is alive while op '{}' runs",
                  problem.graph().op_name(alive.op)),
      needed, capacity, "all devices together have");
}

}  // namespace

std::optional<std::string> why_nothing_fits(const Problem& problem, MemoryRule rule) {
  if (auto reason = crowded_device(problem, rule)) return reason;
  if (auto reason = RestrictedGroups(problem, rule).shortage(rule)) return reason;
  return rule == MemoryRule::kStep ? crowded_moment(problem) : std::nullopt;
}

}  // namespace emplace
