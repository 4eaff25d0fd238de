// The machines: devices, what they can do, and the links between them. Immutable and checked;
// described in spec terms by ClusterSpec, which is what a cluster file says.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/cluster.h>

#include "base/decimal.h"
#include "base/ids.h"
#include "base/units.h"

#include "cluster/cost_curves.h"

namespace emplace {

// What a kind of device can do: published peaks, and how far kernels come towards them, for the
// analytic cost model.
struct DeviceKind {
  std::string name;
  std::map<std::string, double, std::less<>> peak_flops;  // per second, by dtype name
  double memory_bandwidth = 0;                            // bytes per second
  Bytes memory = 0;
  double launch_us = 0;  // what the host needs to start one plain kernel
  CostCurves curves = gpu_curves();
  std::string source = {};  // where the figures come from

  // By the name: "cpu", "cpu16". Every other kind is an accelerator.
  bool is_cpu() const { return name.starts_with("cpu"); }
};

struct Device {
  std::string name;
  std::string kind;
  Bytes memory = 0;  // capacity; kUnlimited is allowed
  Nanoseconds gap = 0;
  Decimal slowdown{1, 0};
  bool free_communication = false;
  // Where it is when steps are executed: "cores 0-3" or "cuda:0" (cluster/runs_on.h). Empty:
  // nowhere, it is only simulated.
  std::string runs_on = {};
  // Where it is for the other ranks of the machine that measure steps by themselves: for the
  // second, the third ... (cluster/own_devices.h).
  std::vector<std::string> also_runs_on = {};
};

// What a link rule says as its channel where any number of transfers may pass at once.
inline constexpr std::string_view kUnlimitedChannel = "unlimited";

struct ClusterSpec {
  std::string name;
  std::vector<DeviceKind> kinds;  // own kinds; built-in ones need not be repeated
  std::vector<Device> devices;
  std::vector<LinkRule> links;
};

// One ordered pair's connection. A transfer lasts latency + ceil(bytes * 10^9 / bandwidth).
struct Link {
  ChannelId channel = kNoChannel;
  std::int64_t bandwidth = 0;
  Nanoseconds latency = 0;
  Nanoseconds hold = 0;
  bool multicast = false;
  bool throttled = false;
  bool unlimited = false;  // any number of transfers at once; the channel is the pair's own then
};

// How long `bytes` take on the link; throws an Error when it does not fit in 63 bits.
Nanoseconds transfer_time(const Link& link, Bytes bytes);

class Cluster {
 public:
  static constexpr std::size_t kMaxDevices = 1024;

  // Checks everything and expands the rules; throws an Error that names the device or the rule.
  explicit Cluster(ClusterSpec spec);

  const std::string& name() const { return spec_.name; }
  const ClusterSpec& spec() const { return spec_; }

  DeviceId num_devices() const { return static_cast<DeviceId>(spec_.devices.size()); }
  const Device& device(DeviceId id) const { return spec_.devices[id]; }
  std::optional<DeviceId> find_device(std::string_view name) const;
  const DeviceKind& kind_of(DeviceId id) const { return kinds_[id]; }
  bool is_cpu(DeviceId id) const { return kinds_[id].is_cpu(); }

  // Nothing from a device to itself, and where no rule covers the pair.
  const Link* link(DeviceId from, DeviceId to) const {
    const Link& found = links_[static_cast<std::size_t>(from) * num_devices() + to];
    return found.channel == kNoChannel ? nullptr : &found;
  }
  ChannelId num_channels() const { return static_cast<ChannelId>(channel_names_.size()); }
  const std::string& channel_name(ChannelId id) const { return channel_names_[id]; }
  // Whether it carries any number of transfers at once, rather than one.
  bool is_unlimited(ChannelId id) const { return unlimited_[id]; }

  // Whether every device can send to every other.
  bool fully_linked() const;
  // Throws an Error that names the first device that no other device is linked with.
  void require_linked() const;

 private:
  void check_devices() const;
  void resolve_kinds();
  void expand_links();

  ClusterSpec spec_;
  std::vector<DeviceKind> kinds_;  // by device
  std::vector<Link> links_;        // by ordered pair
  std::vector<std::string> channel_names_;
  std::vector<bool> unlimited_;  // by channel
};

}  // namespace emplace
