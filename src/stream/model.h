// A stream of steps (sim/throughput.h) as a hypergraph: items, which are the problem's colocation
// groups, and nets, the tensors that go between items. The load of a device or channel, and so the
// period, is a sum over items and nets: moving an item changes only what its own nets touch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

#include "sim/throughput.h"

namespace emplace {

class StreamModel {
 public:
  // Everything that an item's ops keep and write is alive at once.
  StreamModel(const Problem& problem, Overlap overlap);
  // An item holds so much, by item, and nothing for a while.
  StreamModel(const Problem& problem, Overlap overlap, std::vector<Bytes> memory);

  const Problem& problem() const { return problem_; }
  Overlap overlap() const { return overlap_; }
  std::uint32_t num_items() const { return problem_.num_groups(); }
  std::uint32_t num_nets() const { return static_cast<std::uint32_t>(source_.size()); }
  DeviceId num_devices() const { return problem_.num_devices(); }

  Nanoseconds time(std::uint32_t item, DeviceId device) const {
    return times_[static_cast<std::size_t>(item) * num_devices() + device];
  }
  Bytes memory(std::uint32_t item) const { return memory_[item]; }
  Bytes temp(std::uint32_t item) const { return temp_[item]; }  // the largest of its ops
  Bytes capacity(DeviceId device) const { return problem_.cluster().device(device).memory; }
  bool pays(DeviceId device) const { return pays_[device] != 0; }  // for communication

  // A net: the item that makes it, and the others that read it (ascending, no repeats; never none).
  // Tensors of one item that the same others read are one net.
  std::uint32_t source(std::uint32_t net) const { return source_[net]; }
  std::span<const std::uint32_t> sinks(std::uint32_t net) const { return sinks_[net]; }
  // How long its tensors take, one after the other, on a link.
  Nanoseconds length(std::uint32_t net, DeviceId from, DeviceId to) const {
    const std::uint32_t link = link_class_[static_cast<std::size_t>(from) * num_devices() + to];
    return lengths_[static_cast<std::size_t>(link) * num_nets() + net];
  }
  // Ordered pairs of one class have links of equal bandwidth and latency. The class says nothing
  // where there is no link.
  std::uint32_t num_link_classes() const { return num_link_classes_; }
  std::uint32_t link_class(DeviceId from, DeviceId to) const {
    return link_class_[static_cast<std::size_t>(from) * num_devices() + to];
  }
  Nanoseconds length_in_class(std::uint32_t net, std::uint32_t link_class) const {
    return lengths_[static_cast<std::size_t>(link_class) * num_nets() + net];
  }
  // The nets that an item makes or reads, ascending.
  std::span<const std::uint32_t> nets(std::uint32_t item) const { return nets_[item]; }

  // Whether every link is as fast as every other, and none is multicast.
  bool uniform_links() const { return num_link_classes_ == 1 && !multicast_; }
  bool multicast() const { return multicast_; }

 private:
  void add_items();
  void add_memory();
  void add_nets();
  void add_links();

  const Problem& problem_;
  Overlap overlap_;
  std::vector<Nanoseconds> times_;
  std::vector<Bytes> memory_;
  std::vector<Bytes> temp_;
  std::vector<std::uint8_t> pays_;
  std::vector<std::uint32_t> source_;
  Csr<std::uint32_t> sinks_;
  Csr<std::uint32_t> nets_;
  Csr<TensorId> tensors_;  // by net
  std::vector<std::uint32_t> link_class_;
  std::uint32_t num_link_classes_ = 0;
  bool multicast_ = false;
  std::vector<Nanoseconds> lengths_;
};

}  // namespace emplace
