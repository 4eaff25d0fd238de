#include "reproduce/workloads.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/check.h"

#include "io/readers.h"
#include "support/workloads.h"
#include "zoo/published.h"

namespace emplace::bench {
namespace {

// After instances of a cloud: five classes of speed, and of network (Mayer et al. have 50 devices
// of unequal speed, memory and bandwidth; their figures are not published).
struct InstanceClass {
  Decimal slowdown;
  std::int64_t bandwidth;  // bytes per second
  std::int64_t memory_percent;
};
constexpr std::int64_t kGigabit = 125'000'000;
constexpr std::size_t kUnequalDevices = 50;

const std::array<InstanceClass, 5>& instance_classes() {
  static const std::array<InstanceClass, 5> all{{{{1, 0}, 25 * kGigabit, 60},
                                                 {{15, -1}, 10 * kGigabit, 40},
                                                 {{2, 0}, 10 * kGigabit, 30},
                                                 {{3, 0}, 5 * kGigabit, 20},
                                                 {{4, 0}, 5 * kGigabit, 20}}};
  return all;
}

std::shared_ptr<const Cluster> unequal_devices(const std::shared_ptr<const Graph>& graph) {
  const Bytes needed = single_device_peak(graph);
  ClusterSpec spec;
  spec.name = "unequal";
  const auto class_of = [](std::size_t device) -> const InstanceClass& {
    return instance_classes()[device % instance_classes().size()];
  };
  for (std::size_t i = 0; i < kUnequalDevices; ++i) {
    spec.devices.push_back({.name = fmt::format("instance{}", i),
                            .kind = "p100",
                            .memory = needed * class_of(i).memory_percent / 100,
                            .slowdown = class_of(i).slowdown});
  }
  // A device sends one tensor at a time, as fast as the slower end's network.
  for (std::size_t i = 0; i < kUnequalDevices; ++i) {
    for (std::size_t j = 0; j < kUnequalDevices; ++j) {
      if (i == j) continue;
      spec.links.push_back({.from = spec.devices[i].name,
                            .to = spec.devices[j].name,
                            .bandwidth = std::min(class_of(i).bandwidth, class_of(j).bandwidth),
                            .latency = 50'000,
                            .channel = "out"});
    }
  }
  return std::make_shared<const Cluster>(std::move(spec));
}

// As many as Post had where that takes minutes; else what five seeds of both versions have time for
// in hours: policies that decide about every op, and wide networks, take seconds a placement.
std::int64_t evaluations_of(const zoo::PublishedWorkload& one) {
  const bool cheap = one.system == "Post" || one.system == "Placeto" ||
                     one.workload.find("CIFAR") != std::string::npos;
  if (cheap) return 2400;
  if (one.model.find("gnmt") != std::string::npos) return 400;
  return 600;
}

// One of the published ones.
Workload long_placeto(const std::string& name) {
  for (const zoo::PublishedWorkload& one : zoo::published_workloads()) {
    if (one.system != "Placeto" || one.workload != name) continue;
    return {.name = fmt::format("Placeto: {}, 24,000 placements", name),
            .model = one.model,
            .cluster = one.cluster,
            .evaluations = 24'000};
  }
  EMPLACE_CHECK(false);
  return {};
}

std::vector<Workload> own_workloads() {
  return {{.name = "RNNLM on 4 of today",
           .model = "zoo:rnnlm:layers=2,batch=64",
           .memory_percent = 120,
           .evaluations = 600},
          {.name = "ResNet-50 on 4 of today",
           .model = "zoo:resnet-50:batch=32",
           .memory_percent = 120,
           .evaluations = 600},
          // Mars's GNMT-4 has more than twice as many words, and one run of it would take hours; in
          // 80 % of the memory that one device would need.
          {.name = "GNMT-4 of 16 words",
           .model = "zoo:gnmt-4:batch=256,sequence=16",
           .cluster = "4xp100-12gb-tf1@4669MiB+cpu-broadwell24",
           .evaluations = 400},
          // Ten times as many placements as Placeto's others: 2,400 are four updates, in which its
          // parts make no difference.
          long_placeto("Inception-V3, 2 GPUs"),
          long_placeto("Inception-V3, 4 GPUs"),
          long_placeto("NMT, 2 GPUs"),
          long_placeto("NASNet, 4 GPUs"),
          {.name = "CNN on 50 unequal", .model = "zoo:inception-v3", .cluster = "unequal"},
          {.name = "RNN on 50 unequal", .model = "zoo:rnnlm", .cluster = "unequal"},
          // TensorFlow's dynamic loop, unrolled, as all graphs here are.
          {.name = "dynamic RNN on 50 unequal", .model = "zoo:gnmt-2", .cluster = "unequal"}};
}

}  // namespace

std::shared_ptr<const Cluster> cluster_of(const Workload& workload,
                                          const std::shared_ptr<const Graph>& graph) {
  if (workload.cluster.empty()) {
    return equal_devices(graph, workload.devices, workload.memory_percent);
  }
  return workload.cluster == "unequal" ? unequal_devices(graph) : read_cluster(workload.cluster);
}

std::string Workload::description() const {
  if (!cluster.empty()) return fmt::format("{} on {}", model, cluster);
  return fmt::format("{} on {} devices at {} %", model, devices, memory_percent);
}

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = [] {
    std::vector<Workload> result;
    for (const zoo::PublishedWorkload& one : zoo::published_workloads()) {
      const std::string name = fmt::format("{}: {}", one.system, one.workload);
      result.push_back({.name = name,
                        .model = one.model,
                        .cluster = one.cluster,
                        .evaluations = evaluations_of(one)});
    }
    for (const Workload& own : own_workloads()) result.push_back(own);
    return result;
  }();
  return all;
}

const Workload& workload(const std::string& name) {
  const auto found = std::find_if(workloads().begin(), workloads().end(),
                                  [&](const Workload& one) { return one.name == name; });
  EMPLACE_CHECK(found != workloads().end());
  return *found;
}

}  // namespace emplace::bench
