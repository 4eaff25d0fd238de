#include "placer/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/wide.h"

namespace emplace {
namespace {

// Memory that the op's device must hold while the op runs: what it keeps, its temporaries, what it
// writes and what it reads. A read tensor lies there as a copy of its own size, or, on its
// producer's device, as part of what it is a view of, which may be smaller.
class WorkingSets {
 public:
  explicit WorkingSets(const Problem& problem) : problem_(problem), graph_(problem.graph()) {
    held_.resize(graph_.num_tensors());
    for (OpId op = 0; op < graph_.num_ops(); ++op) {
      for (const TensorId tensor : graph_.outputs(op)) {
        const Bytes own = graph_.memory_bytes(tensor);
        held_[tensor] = graph_.is_view(op) ? std::min(own, held_[graph_.inputs(op)[0]]) : own;
      }
    }
  }

  Bytes of(OpId op) const {
    // Views and sources pass through memory in no time, and several views may share what they
    // alias.
    if (problem_.fastest_duration(op) == 0) return problem_.resident_bytes(op);
    Bytes bytes = problem_.resident_bytes(op) + graph_.temp_bytes(op);
    for (const TensorId tensor : graph_.outputs(op)) bytes += graph_.memory_bytes(tensor);
    // Inputs may overlap each other, and those of the op's own group its resident memory.
    Bytes largest_input = 0;
    for (const TensorId tensor : graph_.inputs(op)) {
      if (problem_.group_of(graph_.producer(tensor)) == problem_.group_of(op)) continue;
      largest_input = std::max(largest_input, held_[tensor]);
    }
    return bytes + largest_input;
  }

 private:
  const Problem& problem_;
  const Graph& graph_;
  std::vector<Bytes> held_;  // the least that a device holds of a tensor that an op there reads
};

struct Restricted {
  std::vector<Bytes> group_need;  // the most that a group needs at once
  bool possible(const Problem& problem, GroupId group, DeviceId device) const {
    return group_need[group] <= problem.cluster().device(device).memory;
  }
};

Restricted restrict_by_memory(const Problem& problem) {
  const WorkingSets working(problem);
  Restricted result;
  result.group_need.resize(problem.num_groups());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const GroupId group = problem.group_of(op);
    // The rest of the group's resident memory is there too.
    const Bytes need =
        working.of(op) + problem.group_resident_bytes(group) - problem.resident_bytes(op);
    result.group_need[group] = std::max(result.group_need[group], need);
  }
  return result;
}

Restricted unrestricted(const Problem& problem) {
  return {std::vector<Bytes>(problem.num_groups(), 0)};
}

// All that the group's ops keep and write, and the largest of their temporaries.
Restricted restrict_by_stream_memory(const Problem& problem) {
  const Graph& graph = problem.graph();
  Restricted result;
  result.group_need.resize(problem.num_groups());
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    Bytes largest_temp = 0;
    for (const OpId op : problem.group_ops(group)) {
      result.group_need[group] += graph.persistent_bytes(op);
      largest_temp = std::max(largest_temp, graph.temp_bytes(op));
      if (graph.is_view(op)) continue;
      for (const TensorId tensor : graph.outputs(op)) {
        result.group_need[group] += graph.memory_bytes(tensor);
      }
    }
    result.group_need[group] += largest_temp;
  }
  return result;
}

Nanoseconds fastest(const Problem& problem, const Restricted& restricted, OpId op) {
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  const GroupId group = problem.group_of(op);
  for (const DeviceId device : problem.allowed_devices(group)) {
    if (!restricted.possible(problem, group, device)) continue;
    best = std::min(best, problem.duration(op, device));
  }
  // Where nothing fits the bound is of no interest, but must still be finite.
  return best == std::numeric_limits<Nanoseconds>::max() ? problem.fastest_duration(op) : best;
}

Nanoseconds critical_path(const Problem& problem, const Restricted& restricted) {
  const Graph& graph = problem.graph();
  std::vector<Nanoseconds> finish(graph.num_ops());
  Nanoseconds longest = 0;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    Nanoseconds start = 0;
    for (const TensorId tensor : graph.inputs(op))
      start = std::max(start, finish[graph.producer(tensor)]);
    for (const OpId before : graph.after(op)) start = std::max(start, finish[before]);
    finish[op] = start + fastest(problem, restricted, op);
    longest = std::max(longest, finish[op]);
  }
  return longest;
}

// For any weights w >= 0 of the devices with sum 1, T = sum w_d T >= sum over ops of the least
// w_d * duration(op, d). Weights in inverse proportion to the time that a device needs for
// everything are the best for devices that differ only in speed. An op also blocks its device for
// the gap, except that the last gap of each device may lie after the end.
Nanoseconds total_work(const Problem& problem, const Restricted& restricted, bool with_gaps) {
  const DeviceId devices = problem.num_devices();
  std::vector<long double> weights(devices);
  long double sum = 0;
  for (DeviceId device = 0; device < devices; ++device) {
    long double all = 1;
    for (OpId op = 0; op < problem.num_ops(); ++op)
      all += static_cast<long double>(problem.duration(op, device));
    weights[device] = 1 / all;
    sum += weights[device];
  }
  const auto gap = [&](DeviceId device) {
    return with_gaps ? problem.cluster().device(device).gap : 0;
  };
  long double bound = 0;
  for (DeviceId device = 0; device < devices; ++device) {
    weights[device] = devices == 1 ? 1 : weights[device] / sum;
    bound -= weights[device] * static_cast<long double>(gap(device));
  }
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const GroupId group = problem.group_of(op);
    long double least = std::numeric_limits<long double>::infinity();
    for (const DeviceId device : problem.allowed_devices(group)) {
      if (!restricted.possible(problem, group, device)) continue;
      const Nanoseconds time = problem.duration(op, device);
      const Nanoseconds blocked = time > 0 ? time + gap(device) : 0;
      least = std::min(least, weights[device] * static_cast<long double>(blocked));
    }
    if (std::isfinite(least)) bound += least;
  }
  constexpr long double kRounding = 1e-12L;  // more than the sums can have lost
  if (devices > 1) bound -= bound * kRounding + kRounding;
  return std::max<Nanoseconds>(0, static_cast<Nanoseconds>(std::ceil(bound)));
}

}  // namespace

LowerBound lower_bound(const Problem& problem, bool fitting_only) {
  const Restricted restricted = fitting_only ? restrict_by_memory(problem) : unrestricted(problem);
  const Nanoseconds path = critical_path(problem, restricted);
  const Nanoseconds work = total_work(problem, restricted, true);
  if (path >= work) return {path, "critical path"};
  return {work, "total work"};
}

LowerBound period_lower_bound(const Problem& problem) {
  Nanoseconds largest = 0;
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    for (const DeviceId device : problem.allowed_devices(group)) {
      Nanoseconds load = 0;
      for (const OpId op : problem.group_ops(group)) load += problem.duration(op, device);
      least = std::min(least, load);
    }
    largest = std::max(largest, least);
  }
  const Nanoseconds work = total_work(problem, unrestricted(problem), false);
  if (largest > work) return {largest, "largest group"};
  return {work, "total work"};
}

std::optional<std::string> why_nothing_fits(const Problem& problem, MemoryRule rule) {
  const Cluster& cluster = problem.cluster();
  const Restricted restricted =
      rule == MemoryRule::kStep ? restrict_by_memory(problem) : restrict_by_stream_memory(problem);
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    DeviceId largest = problem.allowed_devices(group)[0];
    for (const DeviceId device : problem.allowed_devices(group)) {
      if (cluster.device(device).memory > cluster.device(largest).memory) largest = device;
    }
    const Bytes capacity = cluster.device(largest).memory;
    const Bytes need = restricted.group_need[group];
    if (need <= capacity) continue;
    return fmt::format(
        "op '{}' and what must share its device need {} at once; the largest device that may hold "
        "them, '{}', has {}: {} short",
        problem.graph().op_name(problem.group_ops(group)[0]), format_bytes(need),
        cluster.device(largest).name, format_bytes(capacity), format_bytes(need - capacity));
  }
  // A stream's temporaries are shared by a device's ops, so only what stays is summed.
  Wide needed = 0;
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    const bool writes = rule == MemoryRule::kStream && !problem.graph().is_view(op);
    needed += static_cast<Wide>(writes ? problem.graph().persistent_bytes(op)
                                       : problem.resident_bytes(op));
    if (!writes) continue;
    for (const TensorId tensor : problem.graph().outputs(op)) {
      needed += static_cast<Wide>(problem.graph().memory_bytes(tensor));
    }
  }
  Wide capacity = 0;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    capacity += static_cast<Wide>(cluster.device(device).memory);
  }
  if (needed <= capacity) return std::nullopt;
  // What is needed is a sum that fits (compile checked it), and so is the smaller capacity.
  const auto bytes = [](Wide sum) { return format_bytes(static_cast<Bytes>(sum)); };
  return fmt::format("{} need {}; all devices together have {}: {} short",
                     rule == MemoryRule::kStep
                         ? "parameters and other memory that lasts the whole step"
                         : "parameters and all tensors of a step in a stream",
                     bytes(needed), bytes(capacity), bytes(needed - capacity));
}

}  // namespace emplace
