// A stream's hypergraph (stream/model.h) in the form that the search works on, at
// one level of detail: items may be merged into larger ones, whose times and memory are sums. What
// the levels share about the devices is a StreamDevices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "stream/model.h"

namespace emplace {

// The cluster as loads see it. A resource is what has a load: device d is resource d; under
// Overlap::kFull channel c is resource num_devices + c.
struct StreamDevices {
  static constexpr std::uint32_t kNoLinkClass = ~std::uint32_t{0};

  explicit StreamDevices(const StreamModel& model);

  DeviceId count = 0;
  std::uint32_t num_resources = 0;
  bool channels = false;   // have loads, unless they are unlimited: Overlap::kFull
  bool multicast = false;  // some link is
  bool all_linked = true;
  std::uint32_t num_link_classes = 1;
  // Whether a cut net costs every device that it touches the same, whoever sends.
  bool symmetric = false;

  std::vector<Bytes> capacity;
  std::vector<std::uint8_t> pays;     // for communication; never under Overlap::kFull
  std::vector<std::uint32_t> column;  // of times; devices of equal times share one
  std::uint32_t num_columns = 0;
  std::vector<DeviceId> twin;               // the lowest device that differs in name only
  std::vector<std::uint32_t> link_class;    // by ordered pair, or kNoLinkClass
  std::vector<ChannelId> channel;           // by ordered pair
  std::vector<std::uint8_t> loads_channel;  // by ordered pair: what is sent is its channel's load
  std::vector<std::uint8_t> is_multicast;   // by ordered pair
  std::uint32_t num_channels = 0;
  // Sets of devices that items may use; the first is all devices.
  std::vector<std::vector<DeviceId>> sets;

  std::size_t pair(DeviceId from, DeviceId to) const {
    return static_cast<std::size_t>(from) * count + to;
  }
};

class StreamLevel {
 public:
  static constexpr std::uint32_t kNoSet = ~std::uint32_t{0};

  // The model's own items.
  explicit StreamLevel(const StreamModel& model);

  // With the items of each cluster merged into one. Every cluster must have an item, and its items
  // one common set (`common_set`).
  StreamLevel(const StreamLevel& finer, std::span<const std::uint32_t> cluster_of,
              std::uint32_t num_clusters);

  const StreamDevices& devices() const { return *devices_; }
  std::uint32_t num_items() const { return static_cast<std::uint32_t>(memory_.size()); }
  std::uint32_t num_nets() const { return static_cast<std::uint32_t>(pins_.size()); }

  Nanoseconds time(std::uint32_t item, DeviceId device) const {
    return times_[static_cast<std::size_t>(item) * devices_->num_columns +
                  devices_->column[device]];
  }
  // On the fastest of its devices.
  Nanoseconds least_time(std::uint32_t item) const;
  Bytes memory(std::uint32_t item) const { return memory_[item]; }
  Bytes temp(std::uint32_t item) const { return temp_[item]; }
  std::uint32_t set(std::uint32_t item) const { return set_[item]; }
  std::span<const DeviceId> allowed(std::uint32_t item) const { return devices_->sets[set_[item]]; }
  // The set of the two merged, or kNoSet where they are not to be merged.
  std::uint32_t common_set(std::uint32_t a, std::uint32_t b) const {
    if (set_[a] == set_[b] || set_[b] == 0) return set_[a];
    return set_[a] == 0 ? set_[b] : kNoSet;
  }

  // Two or more distinct items, the source first.
  std::span<const std::uint32_t> pins(std::uint32_t net) const { return pins_[net]; }
  std::span<const std::uint32_t> nets(std::uint32_t item) const { return nets_[item]; }
  Nanoseconds length(std::uint32_t net, std::uint32_t link_class) const {
    return lengths_[static_cast<std::size_t>(net) * devices_->num_link_classes + link_class];
  }
  Nanoseconds mean_length(std::uint32_t net) const;

 private:
  // Nets with these pins (source first) and lengths; those of one pin are dropped, and equal ones
  // are added up where that changes no load.
  class NetCollector;
  void finish_nets();

  std::shared_ptr<const StreamDevices> devices_;
  std::vector<Nanoseconds> times_;  // [item][column]
  std::vector<Bytes> memory_;
  std::vector<Bytes> temp_;
  std::vector<std::uint32_t> set_;
  Csr<std::uint32_t> pins_;
  Csr<std::uint32_t> nets_;
  std::vector<Nanoseconds> lengths_;  // [net][link class]
};

}  // namespace emplace
