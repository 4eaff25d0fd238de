#include "reproduce/workloads.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/check.h"

#include "sim/simulator.h"

#include "io/readers.h"
#include "support/workloads.h"

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
  // The papers' machines, with what TensorFlow 1 cost on them (docs/clusters.md).
  const std::string two_k80 = "2xk80-tf1+cpu-haswell18";
  const std::string four_k80 = "4xk80-tf1+cpu-haswell18";
  const std::string two_k40 = "2xk40-tf1+cpu-haswell18";
  const std::string eight_k40 = "8xk40-tf1+cpu-haswell18";
  const std::string two_p100 = "2xp100-tf1+cpu-broadwell24";
  const std::string four_p100 = "4xp100-12gb-tf1+cpu-broadwell24";
  static const std::vector<Workload> all{
      {"inception-v3 on 4 k80", "zoo:inception-v3:batch=32", four_k80},
      {"resnet-50 on 2 k80", "zoo:resnet-50:batch=32", two_k80},
      {"resnet-50 on 4 k80", "zoo:resnet-50:batch=32", four_k80},
      {"nasnet on 4 k80", "zoo:nasnet-small:batch=32", four_k80},
      {"cifar-10 on 4 k80", "zoo:cifar-10-cnn:batch=128", four_k80},
      {"rnnlm on 2 k80", "zoo:rnnlm:batch=64:layers=2", two_k80},
      {"rnnlm on 4 k80", "zoo:rnnlm:batch=64:layers=2", four_k80},
      {"rnnlm-4 on 4 k80", "zoo:rnnlm:batch=64:layers=4", four_k80},
      {"nmt on 4 k80", "zoo:gnmt-2:batch=64", four_k80},
      {"gnmt-2 on 2 k40", "zoo:gnmt-2:batch=64", two_k40},
      {"gnmt-8 on 8 k40", "zoo:gnmt-8:batch=64", eight_k40},
      {"inception-v3 b1 on 4 p100", "zoo:inception-v3:batch=1", four_p100},
      {"gnmt-4 on 4 p100", "zoo:gnmt-4:batch=256", four_p100},
      {"bert on 4 p100", "zoo:bert-base:batch=24:sequence=384", four_p100},
      {"rnnlm-2 on 2 p100", "zoo:rnnlm:batch=64:layers=2", two_p100},
      {"gnmt-2 on 2 p100", "zoo:gnmt-2:batch=64", two_p100},
      {"transformer-xl-2 on 2 p100", "zoo:transformer-xl-2", two_p100},
      {"inception-v3 b64 on 2 p100", "zoo:inception-v3:batch=64", two_p100},
      {"wavenet on 2 p100", "zoo:wavenet:layers=36:cycle=18", two_p100},
      {"rnnlm on 4 of today", "zoo:rnnlm:batch=64:layers=2", "", 4, 120},
      {"resnet-50 on 4 of today", "zoo:resnet-50:batch=32", "", 4, 120},
      {"cnn on 50 unequal", "zoo:inception-v3", "unequal"},
      {"rnn on 50 unequal", "zoo:rnnlm", "unequal"},
      {"dynamic rnn on 50 unequal", "zoo:gnmt-2", "unequal"},
  };
  return all;
}

const Workload& workload(const std::string& name) {
  const auto found = std::find_if(workloads().begin(), workloads().end(),
                                  [&](const Workload& one) { return one.name == name; });
  EMPLACE_CHECK(found != workloads().end());
  return *found;
}

}  // namespace emplace::bench
