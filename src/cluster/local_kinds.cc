#include "cluster/local_kinds.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/check.h"

#include "cluster/device_kinds.h"
#include "cluster/gpu_names.h"

namespace emplace {
namespace {

// The built-in cpu's bandwidth is that of sixteen cores. Each has its share of it; more than
// sixteen do not get more.
constexpr int kBuiltInCores = 16;

std::string as_kind_name(std::string_view gpu_name) {
  std::string name = "gpu-";
  for (const char c : gpu_name) {
    if (c >= 'A' && c <= 'Z') {
      name += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      name += c;
    } else if (name.back() != '-') {
      name += '-';
    }
  }
  while (name.back() == '-') name.pop_back();
  return name;
}

const DeviceKind& nearest_in_memory(Bytes memory) {
  const auto kinds = built_in_device_kinds();
  const auto distance = [&](const DeviceKind& kind) {
    return kind.is_cpu() ? kUnlimited : std::abs(kind.memory - memory);
  };
  return *std::min_element(kinds.begin(), kinds.end(),
                           [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
}

// Estimates need no more digits.
double three_digits(double value) {
  const double scale = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / scale) * scale;
}

}  // namespace

DeviceKind kind_of_cores(const LocalMachine& machine, int cores, Bytes memory) {
  const DeviceKind* built_in = find_device_kind("cpu");
  EMPLACE_CHECK(built_in != nullptr);
  DeviceKind kind = *built_in;
  kind.name = fmt::format("cpu-{}core{}", cores, cores == 1 ? "" : "s");
  const double float32 = three_digits(cores * machine.gigahertz * 1e9 * machine.float32_per_cycle);
  kind.peak_flops = {
      {"float64", float32 / 2}, {"float32", float32}, {"float16", float32}, {"bfloat16", float32}};
  kind.memory_bandwidth *= std::min(1.0, static_cast<double>(cores) / kBuiltInCores);
  kind.memory = memory;
  kind.source = fmt::format(
      "estimated from this machine{}{}: {} float32 operations per core and cycle at {:.4g} GHz",
      machine.processor.empty() ? "" : ", ", machine.processor, machine.float32_per_cycle,
      machine.gigahertz);
  return kind;
}

GpuKind kind_of_local_gpu(const LocalGpu& gpu) {
  if (const DeviceKind* kind = kind_of_gpu(gpu.name, gpu.memory)) return {*kind, true};
  const DeviceKind& nearest = nearest_in_memory(gpu.memory);
  DeviceKind kind = nearest;
  kind.name = as_kind_name(gpu.name);
  kind.memory = gpu.memory;
  kind.source = fmt::format("assumed for {}: the figures of {}", gpu.name, nearest.name);
  return {kind, false};
}

}  // namespace emplace
