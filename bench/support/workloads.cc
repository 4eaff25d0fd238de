#include "support/workloads.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "cluster/device_kinds.h"

#include "sim/simulator.h"

#include "io/readers.h"

namespace emplace::bench {
namespace {

struct Shape {
  std::string_view name;
  std::vector<std::int64_t> slowdowns;  // one a device, of a measured kind
  std::int64_t memory_percent;          // of the peak on one device
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{
      {"a", {1, 1, 1, 1}, 40}, {"b", {1, 1, 1, 1}, 120}, {"c", {1, 2}, 60}};
  return all;
}

// What makes a device of today as slow as those of the published placers.
constexpr std::int64_t kMeasuredSlowdown = 8;

struct DeviceType {
  std::string kind;
  std::int64_t slowdown = 1;
};

// The kind, other than processors, on which most ops were measured.
DeviceType device_type(const Graph& graph) {
  std::map<std::string, std::int64_t> ops;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const MeasuredTime& time : graph.measured_times(op)) {
      ++ops[std::string(graph.strings().get(time.device))];
    }
  }
  std::optional<DeviceType> best;
  std::int64_t most = 0;
  for (const auto& [kind, count] : ops) {
    if (find_device_kind(kind) == nullptr || kind.starts_with("cpu") || count <= most) continue;
    best = {kind, kMeasuredSlowdown};
    most = count;
  }
  return best.value_or(DeviceType{"p100", 1});
}

Device make_device(const DeviceType& type, std::size_t index, std::int64_t slowdown, Bytes memory) {
  return {.name = fmt::format("gpu{}", index),
          .kind = type.kind,
          .memory = memory,
          .slowdown = {type.slowdown * slowdown, 0}};
}

Bytes single_device_peak(const std::shared_ptr<const Graph>& graph, const DeviceType& type) {
  ClusterSpec spec;
  spec.name = "one device";
  spec.devices.push_back(make_device(type, 0, 1, kUnlimited));
  const Simulator simulator(compile(graph, std::make_shared<const Cluster>(std::move(spec))));
  const auto workspace = simulator.make_workspace();
  std::vector<Bytes> peaks(1);
  simulator.evaluate(Placement(graph->num_ops(), DeviceId{0}), ReadyOrder{}, *workspace, peaks);
  return peaks[0];
}

std::shared_ptr<const Cluster> make_cluster(const std::shared_ptr<const Graph>& graph,
                                            const Shape& shape) {
  const DeviceType type = device_type(*graph);
  const Bytes memory = single_device_peak(graph, type) * shape.memory_percent / 100;
  ClusterSpec spec;
  spec.name = shape.name;
  for (std::size_t i = 0; i < shape.slowdowns.size(); ++i) {
    spec.devices.push_back(make_device(type, i, shape.slowdowns[i], memory));
  }
  spec.links.push_back({.bandwidth = 12'000'000'000, .latency = 10'000, .channel = "pair"});
  return std::make_shared<const Cluster>(std::move(spec));
}

}  // namespace

std::vector<std::string> files_below(const std::string& folder, std::string_view ending) {
  std::vector<std::string> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().string().ends_with(ending)) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> captured_graphs() {
  return files_below(kGraphFolder, ".json.gz");
}

std::shared_ptr<const Cluster> cluster_for(const std::shared_ptr<const Graph>& graph,
                                           const std::string& name) {
  const auto shape = std::find_if(shapes().begin(), shapes().end(),
                                  [&](const Shape& one) { return one.name == name; });
  return shape == shapes().end() ? read_cluster(name) : make_cluster(graph, *shape);
}

std::shared_ptr<const Cluster> equal_devices(const std::shared_ptr<const Graph>& graph,
                                             std::size_t count, std::int64_t memory_percent) {
  return make_cluster(graph, {"equal", std::vector<std::int64_t>(count, 1), memory_percent});
}

Bytes single_device_peak(const std::shared_ptr<const Graph>& graph) {
  return single_device_peak(graph, device_type(*graph));
}

double peak_gigabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024 / 1e9;
  }
  return 0;
}

void forget_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << 5;
}

}  // namespace emplace::bench
