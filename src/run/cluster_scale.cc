#include "run/cluster_scale.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/options.h"
#include "base/split.h"

namespace emplace {
namespace {

constexpr double kLeast = 1e-3;
constexpr double kMost = 1e3;

std::int64_t times(std::int64_t value, double factor) {
  return factor == 1 ? value : std::llround(static_cast<double>(value) * factor);
}

void assign(ClusterScale& scale, std::string_view text) {
  std::vector<std::string> names;
  for (const ScaleField& field : scale_fields()) names.emplace_back(field.name);
  const std::size_t equals = text.find('=');
  const std::string name(trim(text.substr(0, equals)));
  for (const ScaleField& field : scale_fields()) {
    if (field.name != name || equals == std::string_view::npos) continue;
    scale.*field.value = read_real("scale " + name, trim(text.substr(equals + 1)), kLeast, kMost);
    return;
  }
  fail_option("scale '{}': expected RESOURCE=FACTOR, e.g. bandwidth=2, of {}{}", text,
              fmt::join(names, ", "), suggestion(name, names));
}

}  // namespace

const std::vector<ScaleField>& scale_fields() {
  static const std::vector<ScaleField> fields{{"compute", &ClusterScale::compute},
                                              {"memory-bandwidth", &ClusterScale::memory_bandwidth},
                                              {"speed", &ClusterScale::speed},
                                              {"memory", &ClusterScale::memory},
                                              {"bandwidth", &ClusterScale::bandwidth},
                                              {"latency", &ClusterScale::latency}};
  return fields;
}

ClusterScale ClusterScale::parse(const std::vector<std::string>& texts) {
  ClusterScale scale;
  for (const std::string& text : texts) {
    for (const std::string_view one : split(text, ',')) assign(scale, one);
  }
  return scale;
}

std::string ClusterScale::to_string() const {
  std::vector<std::string> parts;
  for (const ScaleField& field : scale_fields()) {
    if (this->*field.value != 1)
      parts.push_back(fmt::format("{} x{:g}", field.name, this->*field.value));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Cluster scaled(const Cluster& cluster, const ClusterScale& scale) {
  ClusterSpec spec = cluster.spec();
  if (scale == ClusterScale{}) return Cluster(std::move(spec));
  spec.name += fmt::format(", {}", scale.to_string());
  // Built-in kinds become the cluster's own.
  spec.kinds.clear();
  for (DeviceId id = 0; id < cluster.num_devices(); ++id) {
    DeviceKind kind = cluster.kind_of(id);
    const bool done = std::any_of(spec.kinds.begin(), spec.kinds.end(),
                                  [&](const DeviceKind& own) { return own.name == kind.name; });
    if (done) continue;
    for (auto& [dtype, peak] : kind.peak_flops) peak *= scale.compute;
    kind.memory_bandwidth *= scale.memory_bandwidth;
    spec.kinds.push_back(std::move(kind));
  }
  for (Device& device : spec.devices) {
    constexpr int kDigits = 9;
    if (device.memory != kUnlimited) device.memory = times(device.memory, scale.memory);
    if (scale.speed != 1) {
      device.slowdown = Decimal::from_double(device.slowdown.to_double() / scale.speed, kDigits);
    }
  }
  for (LinkRule& link : spec.links) {
    link.bandwidth = times(link.bandwidth, scale.bandwidth);
    link.latency = times(link.latency, scale.latency);
  }
  return Cluster(std::move(spec));
}

}  // namespace emplace
