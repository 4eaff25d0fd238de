// The machines: devices, what they can do, and the links between them. Immutable and checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <emplace/types.h>

namespace emplace {

class Cluster;

// A file, or a preset's name: "4xp100", "8xv100-nvlink", "2xa100+cpu", "4xp100@12GiB",
// "2x(4xa100-nvlink)@25GB/s" (docs/clusters.md).
std::shared_ptr<const Cluster> read_cluster(const std::string& path_or_preset);

// A rule of the cluster file. `from` and `to` are devices, kinds, or patterns of them such as
// "gpu*", several with commas between them; later rules win.
struct LinkRule {
  std::string from = "*";
  std::string to = "*";
  std::int64_t bandwidth = 0;  // bytes per second
  Nanoseconds latency = 0;
  Nanoseconds hold = 0;
  std::string channel = "pair";  // pair, out, in, unlimited, or a name
  bool multicast = false;
  bool throttled = false;  // executed steps are slowed down to this bandwidth and latency
};

struct DeviceDescription {
  std::string name;
  std::string kind;                            // a built-in one, such as p100
  std::optional<Bytes> memory = std::nullopt;  // the kind's, unless said
};

// Throws an Error that names the device or the rule.
std::shared_ptr<const Cluster> build_cluster(const std::string& name,
                                             const std::vector<DeviceDescription>& devices,
                                             const std::vector<LinkRule>& links);

struct DeviceView {
  std::string name;
  std::string kind;
  Bytes memory = 0;  // kUnlimited where there is no limit
  bool is_cpu = false;
};
std::string name_of(const Cluster& cluster);
std::vector<DeviceView> devices_of(const Cluster& cluster);
std::vector<std::string> channels_of(const Cluster& cluster);

// A cluster file.
std::string cluster_yaml(const Cluster& cluster);

// Names worth showing of presets and of built-in device kinds.
std::vector<std::string> example_presets();
std::vector<std::string> device_kinds();

}  // namespace emplace
