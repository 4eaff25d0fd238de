#include "support/streams.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

#include "graph/workload.h"

#include "placer/linked_devices.h"

#include "support/timed_graph.h"

namespace emplace {

std::shared_ptr<const Problem> random_stream(Rng& rng, const StreamCase& one) {
  ClusterSpec spec = gpu_cluster(one.accelerators);
  spec.kinds.push_back(spec.kinds[0]);
  spec.kinds.back().name = "cpu";
  GraphBuilder builder("stream", kDnnPartitioningSource);
  Bytes memory = 0;
  for (std::uint64_t i = 0; i < one.ops; ++i) {
    OpSpec op{.name = fmt::format("op{}", i), .type = "compute"};
    const auto time = static_cast<std::int64_t>(rng.chance(0.15) ? 0 : 1 + rng.below(20));
    op.time_us = {{"gpu", Decimal{time, 0}}, {"cpu", Decimal{time * 3, 0}}};
    for (std::uint64_t j = rng.below(3); j > 0 && i > 0; --j) {
      op.inputs.push_back(static_cast<TensorId>(i - 1 - rng.below(std::min<std::uint64_t>(i, 4))));
    }
    op.persistent_bytes = static_cast<Bytes>(rng.below(10));
    op.temp_bytes = one.tight ? static_cast<Bytes>(rng.below(3)) : 0;
    memory += op.persistent_bytes;
    if (rng.chance(0.2)) op.colocate = fmt::format("shard{}", rng.below(2));
    const auto bytes = static_cast<Bytes>(1000 * rng.below(rng.chance(0.3) ? 30 : 6));
    builder.add(op, {{.bytes = bytes, .memory_bytes = 0}});
  }
  for (int i = 0; i < one.accelerators; ++i) {
    Device& device = spec.devices[static_cast<std::size_t>(i)];
    if (one.tight) device.memory = memory / one.accelerators + 4;
    if (one.unequal && i == 0) device.slowdown = Decimal{2, 0};
  }
  for (int i = 0; i < one.cpus; ++i) {
    Device cpu;
    cpu.name = fmt::format("cpu{}", i);
    cpu.kind = "cpu";
    cpu.memory = kUnlimited;
    cpu.free_communication = true;
    spec.devices.push_back(cpu);
  }
  spec.links[0].channel = "out";
  return compile_timed(std::make_shared<const Graph>(std::move(builder).build()), spec);
}

std::optional<Evaluation> value_of_stream(const Problem& problem, const Placement& placement,
                                          Overlap overlap) {
  try {
    check_placement(problem, placement);
  } catch (const Error&) {
    return std::nullopt;
  }
  const ThroughputResult result = throughput(problem, placement, overlap);
  Evaluation value{.step = result.period, .overflow = 0};
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    const Bytes capacity = problem.cluster().device(device).memory;
    value.overflow += std::max<Bytes>(0, result.memory[device] - capacity);
  }
  return value;
}

// Counts through the devices like an odometer.
std::optional<Evaluation> best_of_all_streams(const Problem& problem, Overlap overlap) {
  std::vector<std::size_t> at(problem.num_groups(), 0);
  std::vector<DeviceId> device_of(problem.num_groups());
  std::optional<Evaluation> best;
  while (true) {
    for (GroupId group = 0; group < problem.num_groups(); ++group) {
      device_of[group] = problem.allowed_devices(group)[at[group]];
    }
    const auto value = value_of_stream(problem, expand_groups(problem, device_of), overlap);
    if (value && (!best || *value < *best)) best = value;
    GroupId group = 0;
    while (group < problem.num_groups() && ++at[group] == problem.allowed_devices(group).size()) {
      at[group++] = 0;
    }
    if (group == problem.num_groups()) return best;
  }
}

bool has_linked_devices(const Problem& problem) {
  try {
    mutually_linked_devices(problem);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace emplace
