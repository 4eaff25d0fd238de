#include "io/cluster_yaml_kinds.h"

#include <algorithm>
#include <string_view>

#include "base/options.h"

#include "cluster/device_kinds.h"
#include "graph/dtype.h"

#include "io/cluster_yaml_fields.h"

namespace emplace {
namespace {

std::map<std::string, double, std::less<>> read_peaks(const YAML::Node& node,
                                                      const YamlFields& kind) {
  if (!node.IsMap()) kind.fail_field(node, "peak_flops", "expected dtypes with numbers per second");
  std::map<std::string, double, std::less<>> peaks;
  for (const auto& entry : node) {
    const std::string dtype = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const std::string text = entry.second.IsScalar() ? entry.second.Scalar() : "";
    if (dtype != "tf32" && !parse_dtype(dtype)) {
      kind.fail_field(entry.first, "peak_flops",
                      "'{}' is not known; expected a dtype such as float32, tf32 or bfloat16",
                      dtype);
    }
    const auto peak = parse_real(text);
    if (!peak) {
      kind.fail_field(entry.second, "peak_flops", "{}: '{}': expected a number such as 9.5e12",
                      dtype, text);
    }
    if (!peaks.emplace(dtype, *peak).second) {
      kind.fail_field(entry.second, "peak_flops", "{}: is given twice", dtype);
    }
  }
  return peaks;
}

double read_curve_value(const YAML::Node& node, const CurveField& field, const YamlFields& curve) {
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  const auto value = parse_real(text);
  if (!value || *value < field.low || *value > field.high) {
    curve.fail_field(node, std::string(field.name).c_str(), "'{}': expected a number from {} to {}",
                     text, field.low, field.high);
  }
  return *value;
}

// Classes and fields that are not given stay as they are.
void read_curves(const YAML::Node& node, const std::string& kind, CostCurves& curves) {
  YamlFields fields(node, fmt::format("kind '{}': curves", kind));
  for (std::size_t i = 0; i < kNumOpClasses; ++i) {
    const auto op_class = static_cast<OpClass>(i);
    const std::string name(op_class_name(op_class));
    const YAML::Node value = fields.find(name.c_str());
    if (!value.IsDefined()) continue;
    YamlFields curve(value, fmt::format("kind '{}': curves: {}", kind, name));
    for (const CurveField& field : curve_fields()) {
      if (!uses_field(op_class, field.value)) continue;
      const YAML::Node number = curve.find(std::string(field.name).c_str());
      if (number.IsDefined())
        curves[op_class].*field.value = read_curve_value(number, field, curve);
    }
    curve.refuse_others();
  }
  fields.refuse_others();
}

std::vector<std::string> known_kinds(const std::vector<DeviceKind>& own) {
  std::vector<std::string> names;
  for (const DeviceKind& kind : own) names.push_back(kind.name);
  for (const DeviceKind& kind : built_in_device_kinds()) names.push_back(kind.name);
  return names;
}

// What a kind starts from: the one that it is `like`, or the built-in one of its name.
DeviceKind start_of(const std::string& name, const std::optional<std::string>& like,
                    const YamlFields& fields, const std::vector<DeviceKind>& own) {
  if (!like) {
    const DeviceKind* built_in = find_device_kind(name);
    return built_in != nullptr ? *built_in : DeviceKind{};
  }
  if (const DeviceKind* kind = find_kind(own, *like)) return *kind;
  fail_input("line {}: {}: like: '{}' is neither built in nor listed above under kinds{}",
             fields.line(), fields.what(), *like, suggestion(*like, known_kinds(own)));
}

DeviceKind read_kind(const std::string& name, const YAML::Node& node,
                     const std::vector<DeviceKind>& own) {
  YamlFields fields(node, fmt::format("kind '{}'", name));
  const auto like = fields.text("like");
  DeviceKind kind = start_of(name, like, fields, own);
  if (like && !kind.source.empty()) kind.source = fmt::format("like {}: {}", *like, kind.source);
  kind.name = name;
  if (const YAML::Node peaks = fields.find("peak_flops"); peaks.IsDefined()) {
    kind.peak_flops = read_peaks(peaks, fields);
  }
  if (const auto bandwidth = fields.bandwidth("memory_bandwidth")) {
    kind.memory_bandwidth = static_cast<double>(*bandwidth);
  }
  kind.memory = fields.memory("memory").value_or(kind.memory);
  kind.launch_us = fields.real("launch_us").value_or(kind.launch_us);
  kind.source = fields.text("source").value_or(kind.source);
  if (const YAML::Node curves = fields.find("curves"); curves.IsDefined()) {
    read_curves(curves, name, kind.curves);
  }
  fields.refuse_others();
  return kind;
}

}  // namespace

const DeviceKind* find_kind(const std::vector<DeviceKind>& own, std::string_view name) {
  const auto found = std::find_if(own.begin(), own.end(),
                                  [&](const DeviceKind& kind) { return kind.name == name; });
  return found != own.end() ? &*found : find_device_kind(name);
}

std::vector<DeviceKind> read_kinds(const YAML::Node& node) {
  std::vector<DeviceKind> kinds;
  if (!node.IsDefined() || node.IsNull()) return kinds;
  const YamlFields fields(node, "kinds");  // checks the names
  for (const auto& entry : node) {
    kinds.push_back(read_kind(entry.first.Scalar(), entry.second, kinds));
  }
  return kinds;
}

Bytes memory_of_device(const std::string& kind, const std::vector<DeviceKind>& own,
                       YamlFields& device) {
  const DeviceKind* found = find_kind(own, kind);
  if (found == nullptr) {
    fail_input("line {}: {}: kind: '{}' is neither built in nor listed under kinds{}",
               device.line(), device.what(), kind, suggestion(kind, known_kinds(own)));
  }
  if (const auto given = device.memory("memory")) return *given;
  if (found->memory <= 0) {
    fail_input("line {}: {}: memory: is missing, and kind '{}' has none either", device.line(),
               device.what(), kind);
  }
  return found->memory;
}

}  // namespace emplace
