// Merging is exact: an assignment of clusters has the loads and the memory of the same assignment
// of their items, and lacks a link where that does. Times and memory add up, of temporaries the
// largest counts, and a net costs what it did, as all pins of a cluster are on one device; a net
// within one cluster costs nothing and is dropped.
//
// Equal nets become one whose length is the sum. That is allowed where every link is as fast as
// every other (one link class), since a cost is then a number of lengths; whoever sends matters,
// unless the devices are `symmetric`, where a net is the set of its pins. With several classes the
// longest of several links counts, and the longest of a sum is not the sum of the longest. Nets are
// found by a hash of their pins and then compared, so collisions cost time only.
//
// A level takes O(items * columns + pins log pins). Multilevel as in Karypis and Kumar, SIAM J.
// Sci. Comput. 1998.
#include "stream/level.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/check.h"

namespace emplace {
namespace {

bool same_times(const StreamModel& model, DeviceId a, DeviceId b) {
  for (std::uint32_t item = 0; item < model.num_items(); ++item) {
    if (model.time(item, a) != model.time(item, b)) return false;
  }
  return true;
}

}  // namespace

StreamDevices::StreamDevices(const StreamModel& model)
    : count(model.num_devices()), num_link_classes(model.num_link_classes()) {
  const Cluster& cluster = model.problem().cluster();
  channels = model.overlap() == Overlap::kFull;
  multicast = model.multicast();
  num_channels = cluster.num_channels();
  num_resources = count + (channels ? num_channels : 0);
  std::vector<DeviceId> first_of_column;
  for (DeviceId device = 0; device < count; ++device) {
    capacity.push_back(model.capacity(device));
    pays.push_back(!channels && model.pays(device) ? 1 : 0);
    std::uint32_t found = 0;
    while (found < first_of_column.size() && !same_times(model, first_of_column[found], device)) {
      ++found;
    }
    if (found == first_of_column.size()) first_of_column.push_back(device);
    column.push_back(found);
  }
  num_columns = static_cast<std::uint32_t>(first_of_column.size());
  for (DeviceId from = 0; from < count; ++from) {
    for (DeviceId to = 0; to < count; ++to) {
      const Link* link = cluster.link(from, to);
      link_class.push_back(link == nullptr ? kNoLinkClass : model.link_class(from, to));
      channel.push_back(link == nullptr ? kNoChannel : link->channel);
      loads_channel.push_back(channels && link != nullptr && !link->unlimited ? 1 : 0);
      is_multicast.push_back(link != nullptr && link->multicast ? 1 : 0);
      if (link == nullptr && from != to) all_linked = false;
    }
  }
  symmetric = !channels && all_linked && num_link_classes == 1;

  sets.emplace_back();
  for (DeviceId device = 0; device < count; ++device) sets[0].push_back(device);
}

namespace {

// Whether what one pair sends costs as much as what another does.
bool same_way(const StreamDevices& devices, std::size_t a, std::size_t b) {
  return devices.link_class[a] == devices.link_class[b] &&
         devices.loads_channel[a] == devices.loads_channel[b];
}

// Whether swapping the two devices' names would change nothing but which channel carries what.
bool are_twins(const StreamDevices& devices, DeviceId a, DeviceId b) {
  if (devices.column[a] != devices.column[b] || devices.capacity[a] != devices.capacity[b] ||
      devices.pays[a] != devices.pays[b] ||
      !same_way(devices, devices.pair(a, b), devices.pair(b, a))) {
    return false;
  }
  for (DeviceId other = 0; other < devices.count; ++other) {
    if (other == a || other == b) continue;
    if (!same_way(devices, devices.pair(a, other), devices.pair(b, other)) ||
        !same_way(devices, devices.pair(other, a), devices.pair(other, b))) {
      return false;
    }
  }
  for (const std::vector<DeviceId>& set : devices.sets) {
    if (std::binary_search(set.begin(), set.end(), a) !=
        std::binary_search(set.begin(), set.end(), b)) {
      return false;
    }
  }
  return true;
}

std::uint64_t hash_pins(std::span<const std::uint32_t> pins) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (const std::uint32_t pin : pins) {
    hash = (hash ^ pin) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

class StreamLevel::NetCollector {
 public:
  explicit NetCollector(StreamLevel& level)
      : level_(level), seen_(level.num_items(), kNever), devices_(*level.devices_) {}

  // `pins` may repeat.
  template <class Length>
  void add(std::span<const std::uint32_t> pins, Length&& length) {
    pins_.clear();
    for (const std::uint32_t pin : pins) {
      if (seen_[pin] == serial_) continue;
      seen_[pin] = serial_;
      pins_.push_back(pin);
    }
    ++serial_;
    if (pins_.size() < 2) return;
    lengths_.clear();
    bool counts = !devices_.all_linked;  // a net of no length still needs its links
    for (std::uint32_t link = 0; link < devices_.num_link_classes; ++link) {
      lengths_.push_back(length(link));
      counts = counts || lengths_.back() > 0;
    }
    if (!counts) return;
    // Without a sender of its own, a net is its set of pins.
    std::sort(pins_.begin() + (devices_.symmetric ? 0 : 1), pins_.end());
    if (devices_.num_link_classes > 1 || !merge_into_equal()) append();
  }

 private:
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};

  bool merge_into_equal() {
    const auto [found, added] = first_of_hash_.try_emplace(hash_pins(pins_), level_.num_nets());
    if (added) {
      next_of_hash_.push_back(kNever);
      return false;
    }
    for (std::uint32_t net = found->second;; net = next_of_hash_[net]) {
      const auto known = level_.pins_[net];
      if (std::equal(known.begin(), known.end(), pins_.begin(), pins_.end())) {
        level_.lengths_[net] += lengths_[0];
        return true;
      }
      if (next_of_hash_[net] == kNever) {
        next_of_hash_[net] = level_.num_nets();
        next_of_hash_.push_back(kNever);
        return false;
      }
    }
  }

  void append() {
    level_.pins_.push_back(pins_);
    level_.lengths_.insert(level_.lengths_.end(), lengths_.begin(), lengths_.end());
  }

  StreamLevel& level_;
  std::vector<std::uint32_t> seen_;
  const StreamDevices& devices_;
  std::uint32_t serial_ = 0;
  std::vector<std::uint32_t> pins_;
  std::vector<Nanoseconds> lengths_;
  std::unordered_map<std::uint64_t, std::uint32_t> first_of_hash_;
  std::vector<std::uint32_t> next_of_hash_;  // by net
};

StreamLevel::StreamLevel(const StreamModel& model) {
  auto devices = std::make_shared<StreamDevices>(model);
  const Problem& problem = model.problem();
  std::map<std::vector<DeviceId>, std::uint32_t> known{{devices->sets[0], 0}};
  for (std::uint32_t item = 0; item < model.num_items(); ++item) {
    memory_.push_back(model.memory(item));
    temp_.push_back(model.temp(item));
    const auto allowed = problem.allowed_devices(item);
    if (allowed.size() == devices->count) {
      set_.push_back(0);
      continue;
    }
    std::vector<DeviceId> list(allowed.begin(), allowed.end());
    const auto next = static_cast<std::uint32_t>(devices->sets.size());
    const auto [found, added] = known.try_emplace(std::move(list), next);
    if (added) devices->sets.push_back(found->first);
    set_.push_back(found->second);
  }
  for (DeviceId device = 0; device < devices->count; ++device) {
    DeviceId twin = 0;
    while (twin < device && !are_twins(*devices, twin, device)) ++twin;
    devices->twin.push_back(twin);
  }
  times_.resize(static_cast<std::size_t>(num_items()) * devices->num_columns);
  for (std::uint32_t item = 0; item < num_items(); ++item) {
    for (DeviceId device = 0; device < devices->count; ++device) {
      times_[static_cast<std::size_t>(item) * devices->num_columns + devices->column[device]] =
          model.time(item, device);
    }
  }
  devices_ = std::move(devices);

  NetCollector collector(*this);
  std::vector<std::uint32_t> pins;
  for (std::uint32_t net = 0; net < model.num_nets(); ++net) {
    const auto sinks = model.sinks(net);
    pins.assign(1, model.source(net));
    pins.insert(pins.end(), sinks.begin(), sinks.end());
    collector.add(pins, [&](std::uint32_t link) { return model.length_in_class(net, link); });
  }
  finish_nets();
}

StreamLevel::StreamLevel(const StreamLevel& finer, std::span<const std::uint32_t> cluster_of,
                         std::uint32_t num_clusters)
    : devices_(finer.devices_) {
  const std::uint32_t columns = devices_->num_columns;
  times_.assign(static_cast<std::size_t>(num_clusters) * columns, 0);
  memory_.assign(num_clusters, 0);
  temp_.assign(num_clusters, 0);
  set_.assign(num_clusters, 0);
  for (std::uint32_t item = 0; item < finer.num_items(); ++item) {
    const std::uint32_t cluster = cluster_of[item];
    for (std::uint32_t column = 0; column < columns; ++column) {
      times_[static_cast<std::size_t>(cluster) * columns + column] +=
          finer.times_[static_cast<std::size_t>(item) * columns + column];
    }
    memory_[cluster] += finer.memory_[item];
    temp_[cluster] = std::max(temp_[cluster], finer.temp_[item]);
    EMPLACE_DCHECK(set_[cluster] == 0 || finer.set_[item] == 0 ||
                   set_[cluster] == finer.set_[item]);
    if (set_[cluster] == 0) set_[cluster] = finer.set_[item];
  }
  NetCollector collector(*this);
  std::vector<std::uint32_t> pins;
  for (std::uint32_t net = 0; net < finer.num_nets(); ++net) {
    pins.clear();
    for (const std::uint32_t pin : finer.pins_[net]) pins.push_back(cluster_of[pin]);
    collector.add(pins, [&](std::uint32_t link) { return finer.length(net, link); });
  }
  finish_nets();
}

void StreamLevel::finish_nets() {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  pairs.reserve(pins_.total());
  for (std::uint32_t net = 0; net < num_nets(); ++net) {
    for (const std::uint32_t pin : pins_[net]) pairs.emplace_back(pin, net);
  }
  nets_ = Csr<std::uint32_t>::from_pairs(num_items(), pairs);
}

Nanoseconds StreamLevel::least_time(std::uint32_t item) const {
  const auto first = times_.begin() + static_cast<std::ptrdiff_t>(item) * devices_->num_columns;
  return *std::min_element(first, first + devices_->num_columns);
}

Nanoseconds StreamLevel::mean_length(std::uint32_t net) const {
  Nanoseconds sum = 0;
  for (std::uint32_t link = 0; link < devices_->num_link_classes; ++link) sum += length(net, link);
  return sum / devices_->num_link_classes;
}

}  // namespace emplace
