#include "cluster/machine_presets.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"

#include "cluster/fabrics.h"
#include "cluster/machines.h"
#include "cluster/presets.h"

namespace emplace {
namespace {

constexpr const char* kExample = "2x(4xa100-nvlink)@25GB/s";

struct Group {
  std::size_t count = 1;
  std::string_view preset;  // of each machine
};

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name), rest_(name) {}

  std::vector<Group> groups() {
    std::vector<Group> found{group()};
    while (rest_.starts_with('+')) {
      rest_.remove_prefix(1);
      found.push_back(group());
    }
    return found;
  }

  // Nothing where none is given.
  std::int64_t bandwidth() {
    if (rest_.empty()) return 0;
    if (!rest_.starts_with('@')) fail("'{}' is left over", rest_);
    rest_.remove_prefix(1);
    const auto bandwidth = parse_bandwidth(rest_);
    if (!bandwidth || *bandwidth == 0) {
      fail("the network's bandwidth '{}': expected one such as 25GB/s or 200Gb/s", rest_);
    }
    return *bandwidth;
  }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_option("cluster '{}': {}; machines are written as in {}", name_,
                fmt::format(format, std::forward<Args>(args)...), kExample);
  }

 private:
  Group group() {
    Group result;
    const char* const end = rest_.data() + rest_.size();
    const auto parsed = std::from_chars(rest_.data(), end, result.count);
    const bool counted = parsed.ptr != rest_.data();
    if (parsed.ec == std::errc::result_out_of_range ||
        (counted && (result.count < 1 || result.count > Cluster::kMaxDevices))) {
      fail("expected a number of machines from 1 to {}", Cluster::kMaxDevices);
    }
    rest_.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest_.data()));
    if (counted && (rest_.starts_with('x') || rest_.starts_with('X'))) rest_.remove_prefix(1);
    if (!rest_.starts_with('(')) fail("expected a '(' before '{}'", rest_);
    const std::size_t close = closing();
    result.preset = rest_.substr(1, close - 1);
    rest_.remove_prefix(close + 1);
    return result;
  }

  std::size_t closing() const {
    int depth = 0;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '(') ++depth;
      if (rest_[i] == ')' && --depth == 0) return i;
    }
    fail("a ')' is missing");
  }

  std::string_view name_;
  std::string_view rest_;
};

// Machines share the kinds of the cluster; a kind that two of them change is changed alike, as the
// change is the runtime's.
void add_kinds(const std::vector<DeviceKind>& kinds, ClusterSpec& spec) {
  for (const DeviceKind& kind : kinds) {
    const bool known =
        std::any_of(spec.kinds.begin(), spec.kinds.end(),
                    [&](const DeviceKind& other) { return other.name == kind.name; });
    if (!known) spec.kinds.push_back(kind);
  }
}

}  // namespace

ClusterSpec preset_machines(std::string_view name) {
  Reader reader(name);
  const std::vector<Group> groups = reader.groups();
  const std::int64_t bandwidth = reader.bandwidth();
  ClusterSpec spec;
  spec.name = name;
  std::vector<std::string> machines;
  for (const Group& group : groups) {
    const ClusterSpec one = preset_cluster(group.preset);
    add_kinds(one.kinds, spec);
    for (std::size_t i = 0; i < group.count; ++i) {
      machines.push_back(fmt::format("m{}", machines.size()));
      add_machine({machines.back(), one.devices, one.links}, spec);
      if (spec.devices.size() > Cluster::kMaxDevices) {
        reader.fail("has more than {} devices", Cluster::kMaxDevices);
      }
    }
  }
  if (machines.size() > 1 && bandwidth == 0) reader.fail("the network's bandwidth is missing");
  if (machines.size() > 1) {
    add_network({.bandwidth = bandwidth, .latency = kNetworkLatency, .channel = "out"}, machines,
                spec);
  }
  return spec;
}

}  // namespace emplace
