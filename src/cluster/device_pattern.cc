#include "cluster/device_pattern.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace emplace {
namespace {

bool part_names(std::string_view part, const Device& device) {
  if (matches_pattern(part, device.name) || matches_pattern(part, device.kind)) return true;
  const std::size_t dot = device.name.rfind('.');
  if (dot == std::string::npos) return false;
  return matches_pattern(part, device.name.substr(0, dot + 1) + device.kind);
}

}  // namespace

std::vector<std::string_view> pattern_parts(std::string_view pattern) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t comma = pattern.find(',');
    parts.push_back(trim(pattern.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    pattern.remove_prefix(comma + 1);
  }
}

bool names_device(std::string_view pattern, const Device& device) {
  const std::vector<std::string_view> parts = pattern_parts(pattern);
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return part_names(part, device); });
}

std::string pattern_on(std::string_view pattern, const std::vector<Device>& devices) {
  std::vector<std::string_view> parts = pattern_parts(pattern);
  std::erase_if(parts, [&](std::string_view part) {
    return std::none_of(devices.begin(), devices.end(),
                        [&](const Device& device) { return part_names(part, device); });
  });
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace emplace
