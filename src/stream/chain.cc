// `random_linear_order` is Kahn's algorithm with a stack: what an item frees is pushed in random
// order, so that chains are followed to their ends. Colocation can make a cycle, which is broken at
// the first item not taken yet. O(pins).
//
// `split_order` looks for the lowest limit on the load with which runs, each as long as its device
// allows, take all items: a binary search, down to a thousandth of the limit. Greedy runs are the
// best for loads that grow with the run; here a longer run can cut less, so that `furthest` looks
// on as long as time and memory alone allow, and takes the last end within the limit. Not exact
// then, nor with links that differ, for which a mean length stands. A dozen fills or so, each
// O(pins) where runs end near the limit and O(devices * pins) at worst. Ours; the problem is
// chains-on-chains partitioning (Pinar and Aykanat, J. Parallel Distrib. Comput. 64(8), 2004).
#include "stream/chain.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace emplace {

std::vector<std::uint32_t> random_linear_order(const StreamModel& model, Rng& rng) {
  const std::uint32_t items = model.num_items();
  std::vector<std::uint32_t> waits(items, 0);
  for (std::uint32_t net = 0; net < model.num_nets(); ++net) {
    for (const std::uint32_t sink : model.sinks(net)) ++waits[sink];
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t item = 0; item < items; ++item) {
    if (waits[item] == 0) ready.push_back(item);
  }
  rng.shuffle(ready);
  std::vector<bool> done(items, false);
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> freed;
  std::uint32_t next = 0;  // all items before it are done
  while (order.size() < items) {
    if (ready.empty()) {  // a cycle, which colocation can make: break it at the first item
      while (done[next]) ++next;
      ready.push_back(next);
    }
    const std::uint32_t item = ready.back();
    ready.pop_back();
    if (done[item]) continue;
    done[item] = true;
    order.push_back(item);
    freed.clear();
    for (const std::uint32_t net : model.nets(item)) {
      if (model.source(net) != item) continue;
      for (const std::uint32_t sink : model.sinks(net)) {
        if (--waits[sink] == 0 && !done[sink]) freed.push_back(sink);
      }
    }
    rng.shuffle(freed);
    ready.insert(ready.end(), freed.begin(), freed.end());
  }
  return order;
}

namespace {

class Splitter {
 public:
  Splitter(const StreamModel& model, std::span<const std::uint32_t> order,
           std::span<const DeviceId> devices)
      : model_(model), devices_(devices), inside_(model.num_nets(), 0) {
    device_of_.resize(model.num_items());
    for (const std::uint32_t item : order) {
      const bool everywhere = std::all_of(devices.begin(), devices.end(), [&](DeviceId device) {
        return model.problem().allowed(item, device);
      });
      if (everywhere) {
        order_.push_back(item);
      } else {
        device_of_[item] = fastest(item);
      }
    }
    for (std::uint32_t net = 0; net < model.num_nets(); ++net) {
      Nanoseconds sum = 0;
      for (std::uint32_t link = 0; link < model.num_link_classes(); ++link) {
        sum += model.length_in_class(net, link);
      }
      length_.push_back(sum / model.num_link_classes());
    }
  }

  std::vector<DeviceId> split() {
    Nanoseconds high = 0;
    for (const std::uint32_t item : order_) {
      Nanoseconds longest = 0;
      for (const DeviceId device : devices_) {
        longest = std::max(longest, model_.time(item, device));
      }
      high += longest;
    }
    high += std::accumulate(length_.begin(), length_.end(), Nanoseconds{0});
    Nanoseconds low = 0;
    while (low < high) {
      // Closer than a thousandth is not worth the time: what follows changes the loads anyway.
      if (high - low <= high / 1000) break;
      const Nanoseconds middle = low + (high - low) / 2;
      if (fill(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    fill(high);
    return device_of_;
  }

 private:
  DeviceId fastest(std::uint32_t item) const {
    const auto allowed = model_.problem().allowed_devices(item);
    return *std::min_element(allowed.begin(), allowed.end(), [&](DeviceId a, DeviceId b) {
      return model_.time(item, a) < model_.time(item, b);
    });
  }

  // Whether all items could be placed.
  bool fill(Nanoseconds limit) {
    std::size_t first = 0;
    for (const DeviceId device : devices_) {
      const std::size_t end = furthest(first, device, limit);
      for (; first < end; ++first) device_of_[order_[first]] = device;
    }
    const bool all = first == order_.size();
    for (; first < order_.size(); ++first) device_of_[order_[first]] = devices_.back();
    return all;
  }

  std::size_t furthest(std::size_t first, DeviceId device, Nanoseconds limit) {
    std::size_t result = first;
    Nanoseconds time = 0;
    Nanoseconds cut = 0;
    Bytes memory = 0;
    Bytes temp = 0;
    std::size_t end = first;
    while (end < order_.size()) {
      const std::uint32_t item = order_[end];
      time += model_.time(item, device);
      memory += model_.memory(item);
      temp = std::max(temp, model_.temp(item));
      if (time > limit || memory + temp > model_.capacity(device)) break;
      for (const std::uint32_t net : model_.nets(item)) {
        const auto pins = static_cast<std::uint32_t>(model_.sinks(net).size()) + 1;
        if (inside_[net]++ == 0) cut += length_[net];
        if (inside_[net] == pins) cut -= length_[net];
      }
      ++end;
      if (load(time, cut, device) <= limit) result = end;
    }
    for (std::size_t i = first; i < end; ++i) {
      for (const std::uint32_t net : model_.nets(order_[i])) inside_[net] = 0;
    }
    return result;
  }

  Nanoseconds load(Nanoseconds time, Nanoseconds cut, DeviceId device) const {
    if (model_.overlap() == Overlap::kFull) return std::max(time, cut);
    return model_.pays(device) ? time + cut : time;
  }

  const StreamModel& model_;
  std::span<const DeviceId> devices_;
  std::vector<std::uint32_t> order_;   // of the items that may be on every one of devices_
  std::vector<Nanoseconds> length_;    // by net, the mean over the classes of links
  std::vector<std::uint32_t> inside_;  // by net, its pins in the run
  std::vector<DeviceId> device_of_;
};

}  // namespace

std::vector<DeviceId> split_order(const StreamModel& model, std::span<const std::uint32_t> order,
                                  std::span<const DeviceId> devices) {
  EMPLACE_CHECK(!devices.empty());
  return Splitter(model, order, devices).split();
}

}  // namespace emplace
