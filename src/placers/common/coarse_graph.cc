#include "placers/common/coarse_graph.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

#include "placer/linked_devices.h"
#include "placer/memory.h"

namespace emplace {
namespace {

struct WeightedPair {
  GroupId from;
  GroupId to;
  Bytes bytes;
};

// What groups exchange, in both directions, sorted; pairs may repeat.
std::vector<WeightedPair> exchanges(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<WeightedPair> pairs;
  std::vector<GroupId> readers;
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const GroupId from = problem.group_of(graph.producer(tensor));
    readers.clear();
    for (const OpId op : graph.consumers(tensor)) readers.push_back(problem.group_of(op));
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (const GroupId to : readers) {
      if (to == from) continue;
      pairs.push_back({from, to, graph.bytes(tensor)});
      pairs.push_back({to, from, graph.bytes(tensor)});
    }
  }
  std::sort(pairs.begin(), pairs.end(), [](const WeightedPair& a, const WeightedPair& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
  return pairs;
}

}  // namespace

CoarseGraph build_coarse_graph(const Problem& problem) {
  CoarseGraph result;
  const GroupId size = problem.num_groups();
  result.durations.assign(size, 0);
  result.resident.assign(size, 0);
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    result.durations[problem.group_of(op)] += problem.mean_duration(op);
  }
  for (GroupId group = 0; group < size; ++group) {
    result.resident[group] = problem.group_resident_bytes(group);
  }
  result.offsets.assign(1, 0);
  const std::vector<WeightedPair> pairs = exchanges(problem);
  std::size_t at = 0;
  for (GroupId group = 0; group < size; ++group) {
    while (at < pairs.size() && pairs[at].from == group) {
      const GroupId to = pairs[at].to;
      Bytes bytes = 0;
      for (; at < pairs.size() && pairs[at].from == group && pairs[at].to == to; ++at) {
        bytes += pairs[at].bytes;
      }
      result.neighbours.push_back(to);
      result.edge_bytes.push_back(bytes);
    }
    result.offsets.push_back(static_cast<std::int64_t>(result.neighbours.size()));
  }
  return result;
}

std::vector<std::int32_t> scale_weights(const std::vector<std::int64_t>& values,
                                        std::int64_t limit) {
  double total = 0;
  std::int64_t positive = 0;
  for (const std::int64_t value : values) {
    total += static_cast<double>(value);
    if (value > 0) ++positive;
  }
  EMPLACE_CHECK(positive <= limit / 2);
  // Rounding down and then up to 1 adds at most one for each positive value.
  const double room = static_cast<double>(limit - positive);
  const double factor = total <= room ? 1 : room / total;
  std::vector<std::int32_t> result;
  result.reserve(values.size());
  for (const std::int64_t value : values) {
    const auto scaled = static_cast<std::int32_t>(std::floor(static_cast<double>(value) * factor));
    result.push_back(value > 0 ? std::max(scaled, 1) : 0);
  }
  return result;
}

std::vector<DeviceId> partition_devices(const Problem& problem, const CoarseGraph& graph,
                                        const std::vector<DeviceId>& candidates) {
  // One more than the duration, so that a graph without any time has a majority too.
  std::vector<double> share(problem.num_devices(), 0);
  double everywhere = 0;
  double total = 0;
  for (GroupId group = 0; group < graph.size(); ++group) {
    const double weight = static_cast<double>(graph.durations[group]) + 1;
    const auto allowed = problem.allowed_devices(group);
    total += weight;
    if (allowed.size() == problem.num_devices()) {
      everywhere += weight;
      continue;
    }
    for (const DeviceId device : allowed) share[device] += weight;
  }
  std::vector<DeviceId> result;
  for (const DeviceId device : candidates) {
    if (2 * (everywhere + share[device]) >= total) result.push_back(device);
  }
  return result.empty() ? candidates : result;
}

std::vector<double> speed_shares(const Problem& problem, const std::vector<DeviceId>& devices) {
  const std::vector<double> durations = total_durations(problem);
  std::vector<double> shares;
  double total = 0;
  for (const DeviceId device : devices) {
    shares.push_back(1 / durations[device]);
    total += shares.back();
  }
  for (double& share : shares) share /= total;
  return shares;
}

PlaceResult place_parts(const Problem& problem, Evaluator& evaluator, const CoarseGraph& graph,
                        const std::vector<std::int32_t>& part_of_group,
                        const std::vector<DeviceId>& devices,
                        const std::vector<DeviceId>& allowed) {
  std::vector<DeviceId> device_of_group(graph.size());
  std::vector<Nanoseconds> load(problem.num_devices(), 0);
  std::vector<GroupId> misplaced;
  for (GroupId group = 0; group < graph.size(); ++group) {
    const auto part = static_cast<std::size_t>(part_of_group[group]);
    EMPLACE_CHECK(part < devices.size());
    device_of_group[group] = devices[part];
    load[devices[part]] += graph.durations[group];
    if (!problem.allowed(group, devices[part])) misplaced.push_back(group);
  }
  std::vector<Bytes> exchanged(problem.num_devices(), 0);
  for (const GroupId group : misplaced) {
    const auto begin = static_cast<std::size_t>(graph.offsets[group]);
    const auto end = static_cast<std::size_t>(graph.offsets[group + 1]);
    for (std::size_t i = begin; i < end; ++i) {
      exchanged[device_of_group[graph.neighbours[i]]] += graph.edge_bytes[i];
    }
    DeviceId best = kNoDevice;
    for (const DeviceId device : allowed) {
      if (!problem.allowed(group, device)) continue;
      const bool better = best == kNoDevice || exchanged[device] > exchanged[best] ||
                          (exchanged[device] == exchanged[best] && load[device] < load[best]);
      if (better) best = device;
    }
    EMPLACE_CHECK(best != kNoDevice);
    for (std::size_t i = begin; i < end; ++i) {
      exchanged[device_of_group[graph.neighbours[i]]] = 0;
    }
    load[device_of_group[group]] -= graph.durations[group];
    load[best] += graph.durations[group];
    device_of_group[group] = best;
  }
  PlaceResult result{.placement = expand_groups(problem, device_of_group)};
  if (allowed.size() < problem.num_devices() && !problem.cluster().fully_linked()) {
    result.notes.push_back(unlinked_note(problem, allowed));
  }
  note_shortage(problem, evaluator, result);
  return result;
}

}  // namespace emplace
