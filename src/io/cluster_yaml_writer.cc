#include "io/cluster_yaml_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"

#include "cluster/device_kinds.h"
#include "cluster/machine_view.h"

#include "io/cluster_yaml_kinds.h"

namespace emplace {
namespace {

bool is_word(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || !is_letter(text[0])) return false;
  for (const std::string_view special : {"null", "Null", "NULL"}) {
    if (text == special) return false;
  }
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

std::string quoted_name(std::string_view text) {
  if (is_word(text)) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (code < 0x20 || code == 0x7f) {
      result += fmt::format("\\x{:02x}", code);
    } else {
      result += c;
    }
  }
  return result + '"';
}

// A comment must not leave its line.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

struct Unit {
  std::string_view name;
  std::int64_t scale;
};

// The shortest of the exact ways to write the size.
std::string size_text(Bytes bytes) {
  if (bytes == kUnlimited) return "unlimited";
  constexpr std::array<Unit, 8> kUnits{{{"TiB", 1LL << 40},
                                        {"TB", 1'000'000'000'000},
                                        {"GiB", 1LL << 30},
                                        {"GB", 1'000'000'000},
                                        {"MiB", 1LL << 20},
                                        {"MB", 1'000'000},
                                        {"KiB", 1LL << 10},
                                        {"KB", 1'000}}};
  for (const Unit& unit : kUnits) {
    if (bytes > 0 && bytes % unit.scale == 0) {
      return fmt::format("{}{}", bytes / unit.scale, unit.name);
    }
  }
  return fmt::format("{}B", bytes);
}

// mantissa * 10^exponent with a decimal point rather than an exponent, where that is short.
std::string decimal_text(const Decimal& value) {
  constexpr int kMostPlaces = 18;
  if (value.exponent > 0 && value.exponent <= 3) {
    return fmt::format("{}{}", value.mantissa,
                       std::string(static_cast<std::size_t>(value.exponent), '0'));
  }
  if (value.exponent >= 0 || value.exponent < -kMostPlaces) return value.to_string();
  const auto places = static_cast<std::size_t>(-value.exponent);
  std::string digits = fmt::format("{:0{}}", value.mantissa, places + 1);
  digits.insert(digits.size() - places, 1, '.');
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

// Rates are counted in powers of 1000, so a GB/s is never written as GiB/s.
std::string bandwidth_text(std::int64_t bytes) {
  if (bytes >= 1'000'000'000) return decimal_text({bytes, -9}) + "GB/s";
  if (bytes >= 1'000'000) return decimal_text({bytes, -6}) + "MB/s";
  return fmt::format("{}B/s", bytes);
}

// "9.3e12" rather than "9300000000000", where that is the same number.
std::string peak_text(double peak) {
  const std::string tera = fmt::format("{}e12", peak / 1e12);
  double again = 0;
  const auto parsed = std::from_chars(tera.data(), tera.data() + tera.size(), again);
  return parsed.ec == std::errc{} && parsed.ptr == tera.data() + tera.size() && again == peak
             ? tera
             : fmt::format("{}", peak);
}

std::string microseconds_text(Nanoseconds time) {
  return decimal_text({time, -3});
}

// Own kinds as listed, then the built-in ones that devices use.
std::vector<const DeviceKind*> kinds_to_write(const ClusterSpec& spec) {
  std::vector<const DeviceKind*> kinds;
  for (const DeviceKind& kind : spec.kinds) kinds.push_back(&kind);
  for (const Device& device : spec.devices) {
    const DeviceKind* kind = find_kind(spec.kinds, device.kind);
    if (kind != nullptr && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

// What a kind is like when it is read: the built-in one of its name or, for other CPUs, the
// built-in CPU, unless the file has its own of that name. Otherwise a GPU of no name.
const DeviceKind* written_like(const DeviceKind& kind, const ClusterSpec& spec) {
  const DeviceKind* same = find_device_kind(kind.name);
  const DeviceKind* cpu = find_device_kind("cpu");
  return same == nullptr && kind.is_cpu() && find_kind(spec.kinds, "cpu") == cpu ? cpu : same;
}

// Only what a reader would not know without it: the built-in curves need not be repeated.
std::string curves_text(const DeviceKind& kind, const DeviceKind* like) {
  const CostCurves known = like != nullptr ? like->curves : gpu_curves();
  std::string text;
  for (std::size_t i = 0; i < kNumOpClasses; ++i) {
    const auto op_class = static_cast<OpClass>(i);
    if (kind.curves[op_class] == known[op_class]) continue;
    std::vector<std::string> values;
    for (const CurveField& field : curve_fields()) {
      if (!uses_field(op_class, field.value)) continue;
      values.push_back(fmt::format("{}: {}", field.name, kind.curves[op_class].*field.value));
    }
    text += fmt::format("      {}: {{{}}}\n", op_class_name(op_class), fmt::join(values, ", "));
  }
  return text.empty() ? "" : "    curves:\n" + text;
}

std::string kind_text(const DeviceKind& kind, const DeviceKind* like) {
  std::vector<std::string> peaks;
  for (const auto& [dtype, peak] : kind.peak_flops) {
    peaks.push_back(fmt::format("{}: {}", quoted_name(dtype), peak_text(peak)));
  }
  EMPLACE_CHECK(kind.memory_bandwidth >= 0 && kind.memory_bandwidth < 9e18);
  std::string text = fmt::format("  {}:\n", quoted_name(kind.name));
  if (like != nullptr && like->name != kind.name) text += fmt::format("    like: {}\n", like->name);
  text += fmt::format("    peak_flops: {{{}}}\n", fmt::join(peaks, ", "));
  text += fmt::format("    memory_bandwidth: {}\n",
                      bandwidth_text(std::llround(kind.memory_bandwidth)));
  text += fmt::format("    memory: {}\n", size_text(kind.memory));
  text += fmt::format("    launch_us: {}\n", kind.launch_us);
  text += fmt::format("    source: {}\n", quoted_name(kind.source));
  return text + curves_text(kind, like);
}

std::string places_text(const Device& device) {
  if (device.runs_on.empty()) return "";
  std::string places = quoted_name(device.runs_on);
  for (const std::string& place : device.also_runs_on) places += ", " + quoted_name(place);
  return fmt::format(", runs_on: {}", device.also_runs_on.empty() ? places : "[" + places + "]");
}

std::string device_text(const Device& device) {
  std::string text = fmt::format("- {{name: {}, kind: {}, memory: {}", quoted_name(device.name),
                                 quoted_name(device.kind), size_text(device.memory));
  if (device.gap != 0) text += fmt::format(", gap_us: {}", microseconds_text(device.gap));
  if (device.slowdown != Decimal{1, 0}) {
    text += fmt::format(", slowdown: {}", decimal_text(device.slowdown));
  }
  if (device.free_communication) text += ", free_communication: true";
  return text + places_text(device) + "}\n";
}

std::string link_text(const LinkRule& rule) {
  std::string text = fmt::format("- {{from: {}, to: {}, bandwidth: {}, latency_us: {}",
                                 quoted_name(rule.from), quoted_name(rule.to),
                                 bandwidth_text(rule.bandwidth), microseconds_text(rule.latency));
  if (rule.hold != 0) text += fmt::format(", hold_us: {}", microseconds_text(rule.hold));
  text += fmt::format(", channel: {}", quoted_name(rule.channel));
  if (rule.multicast) text += ", multicast: true";
  if (rule.throttled) text += ", throttled: true";
  return text + "}\n";
}

template <class T, class Write>
std::string list_text(const std::string& indent, const char* field, const std::vector<T>& items,
                      Write write) {
  if (items.empty()) return "";
  std::string text = fmt::format("{}{}:\n", indent, field);
  for (const T& item : items) text += indent + "  " + write(item);
  return text;
}

std::string machine_text(const MachineGroup& group) {
  std::string text = fmt::format("  - name: {}\n", quoted_name(group.machine.name));
  if (group.count) text += fmt::format("    count: {}\n", *group.count);
  if (group.start != 0) text += fmt::format("    start: {}\n", group.start);
  return text + list_text("    ", "devices", group.machine.devices, device_text) +
         list_text("    ", "links", group.machine.links, link_text);
}

std::string machines_text(const MachineView& view) {
  if (view.groups.empty()) return "";
  std::string text =
      "\n# Devices are called machine.device. Links here are within a machine.\n"
      "machines:\n";
  for (const MachineGroup& group : view.groups) text += machine_text(group);
  if (view.network.empty()) return text;
  return text + "\n# Between machines; from and to are machines, and channels theirs.\n" +
         list_text("", "network", view.network, link_text);
}

}  // namespace

std::string write_cluster_yaml(const ClusterSpec& spec) {
  std::string text = fmt::format(
      "# {}, for emplace --cluster. docs/clusters.md explains the fields.\n", one_line(spec.name));
  text += "format: emplace.cluster/1\n";
  text += fmt::format("name: {}\n", quoted_name(spec.name));
  const std::vector<const DeviceKind*> kinds = kinds_to_write(spec);
  if (!kinds.empty()) {
    text +=
        "\n# What each kind can do. These win over the built-in figures of the same name; an\n"
        "# entry that is deleted goes back to those. peak_flops: operations per second.\n"
        "kinds:\n";
    for (const DeviceKind* kind : kinds) text += kind_text(*kind, written_like(*kind, spec));
  }
  const MachineView view = machine_view(spec);
  text += machines_text(view);
  if (!view.devices.empty()) {
    text +=
        "\n# Also: gap_us, slowdown (8: every op takes 8 times as long), free_communication,\n"
        "# runs_on (cores 0-3, cuda:0: where steps are executed), and count and start, for many "
        "alike.\n";
    text += list_text("", "devices", view.devices, device_text);
  }
  if (view.links.empty()) return text;
  text +=
      "\n# Later rules win. from and to: devices, kinds, or patterns such as \"gpu*\", also "
      "several.\n"
      "# channel: pair (each ordered pair its own), out (one per source), in (one per\n"
      "# destination), a name that pairs share, or unlimited (any number of transfers at once).\n";
  return text + list_text("", "links", view.links, link_text);
}

}  // namespace emplace
