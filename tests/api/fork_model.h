// Two branches that meet, described as a caller would: 210 us on one device, 111 us on two.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <emplace/emplace.h>

namespace emplace {

inline std::vector<OpDescription> fork_ops() {
  const std::vector<TensorDescription> kilobyte{{.bytes = 1000}};
  return {{.name = "weight", .type = "parameter", .outputs = kilobyte, .module = "left"},
          {.name = "left",
           .type = "mm",
           .inputs = {{.op = 0}},
           .outputs = kilobyte,
           .module = "left",
           .time_us = {{"p100", 100}}},
          {.name = "right",
           .type = "mm",
           .outputs = kilobyte,
           .module = "right",
           .time_us = {{"p100", 100}}},
          {.name = "join",
           .type = "add",
           .inputs = {{.op = 1}, {.op = 2}},
           .outputs = {{.bytes = 4}},
           .module = "head",
           .time_us = {{"p100", 10}}}};
}

inline std::shared_ptr<const Cluster> p100s(int count, std::optional<Bytes> memory = {}) {
  std::vector<DeviceDescription> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back({.name = "gpu" + std::to_string(i), .kind = "p100", .memory = memory});
  }
  return build_cluster("box", devices, {{.bandwidth = 1'000'000'000}});
}

inline std::shared_ptr<const Problem> fork_on(int devices, std::optional<Bytes> memory = {}) {
  return compile(build_graph("fork", fork_ops()), p100s(devices, memory));
}

}  // namespace emplace
