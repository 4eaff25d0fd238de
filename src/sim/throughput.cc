#include "sim/throughput.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/workload.h"

#include "sim/stream_run.h"

namespace emplace {
namespace {

// Where a tensor goes: its distinct destinations, ascending.
std::vector<DeviceId> destinations(const Graph& graph, const Placement& placement,
                                   TensorId tensor) {
  std::vector<DeviceId> result;
  const DeviceId home = placement[graph.producer(tensor)];
  for (const OpId consumer : graph.consumers(tensor)) {
    if (placement[consumer] != home) result.push_back(placement[consumer]);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

class LoadSum {
 public:
  LoadSum(const Problem& problem, const Placement& placement, Overlap overlap)
      : problem_(problem), placement_(placement), overlap_(overlap) {
    result_.device_loads.resize(problem.num_devices());
    result_.channel_loads.resize(problem.cluster().num_channels());
    result_.memory.resize(problem.num_devices());
  }

  ThroughputResult sum() {
    for (OpId op = 0; op < problem_.num_ops(); ++op) {
      result_.device_loads[placement_[op]] += problem_.duration(op, placement_[op]);
    }
    for (TensorId tensor = 0; tensor < problem_.graph().num_tensors(); ++tensor)
      add_transfers(tensor);
    add_memory();
    for (const Nanoseconds load : result_.device_loads)
      result_.period = std::max(result_.period, load);
    if (overlap_ == Overlap::kFull) {
      for (const Nanoseconds load : result_.channel_loads)
        result_.period = std::max(result_.period, load);
    }
    return std::move(result_);
  }

 private:
  void add_transfers(TensorId tensor) {
    const DeviceId from = placement_[problem_.graph().producer(tensor)];
    // One transfer per destination; those that share a multicast channel are one, as long as the
    // longest of them.
    std::map<ChannelId, Nanoseconds> multicasts;
    std::vector<std::pair<DeviceId, ChannelId>> shared;
    Nanoseconds longest = 0;
    for (const DeviceId to : destinations(problem_.graph(), placement_, tensor)) {
      const Link& link = *problem_.cluster().link(from, to);
      const Nanoseconds length = problem_.transfer_time(tensor, from, to);
      longest = std::max(longest, length);
      if (link.multicast) {
        multicasts[link.channel] = std::max(multicasts[link.channel], length);
        shared.emplace_back(to, link.channel);
      } else {
        if (!link.unlimited) result_.channel_loads[link.channel] += length;
        charge(to, length);
      }
    }
    for (const auto& [channel, length] : multicasts) result_.channel_loads[channel] += length;
    for (const auto& [to, channel] : shared) charge(to, multicasts[channel]);
    charge(from, longest);
  }

  void charge(DeviceId device, Nanoseconds length) {
    if (overlap_ == Overlap::kFull || problem_.cluster().device(device).free_communication) return;
    result_.device_loads[device] += length;
  }

  void add_memory() {
    const Graph& graph = problem_.graph();
    std::vector<Bytes> largest_temp(problem_.num_devices(), 0);
    for (OpId op = 0; op < problem_.num_ops(); ++op) {
      const DeviceId device = placement_[op];
      result_.memory[device] += graph.persistent_bytes(op);
      largest_temp[device] = std::max(largest_temp[device], graph.temp_bytes(op));
      if (graph.is_view(op)) continue;
      for (const TensorId tensor : graph.outputs(op))
        result_.memory[device] += graph.memory_bytes(tensor);
    }
    for (DeviceId device = 0; device < problem_.num_devices(); ++device) {
      result_.memory[device] += largest_temp[device];
    }
  }

  const Problem& problem_;
  const Placement& placement_;
  Overlap overlap_;
  ThroughputResult result_;
};

}  // namespace

ThroughputResult throughput(const Problem& problem, const Placement& placement, Overlap overlap) {
  return LoadSum(problem, placement, overlap).sum();
}

bool stream_is_simulated(const Problem& problem, Overlap overlap) {
  return overlap == Overlap::kFull && !counts_all_alive(problem.graph());
}

ThroughputResult stream_throughput(const Problem& problem, const Placement& placement,
                                   const ReadyOrder& order, Overlap overlap) {
  ThroughputResult result = throughput(problem, placement, overlap);
  if (!stream_is_simulated(problem, overlap)) return result;
  const StreamSimulator stream(problem, placement, order);
  StreamRun run = choose_in_flight(stream);
  result.period = run.period;
  result.memory = std::move(run.peaks);
  result.in_flight = run.in_flight;
  result.latency = run.latency;
  result.load = stream.largest_load();
  result.memory_limited = run.memory_limited;
  return result;
}

}  // namespace emplace
