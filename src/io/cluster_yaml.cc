// emplace.cluster/1 in (docs/clusters.md). Errors name the line, the object and the field; fields
// that the format does not have are refused. Sizes and times are exact decimals until they are
// rounded, once, to integers.
#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "base/options.h"

#include "cluster/device_kinds.h"

#include "io/readers.h"

namespace emplace {
namespace {

constexpr const char* kClusterFormat = "emplace.cluster/1";

int line_of(const YAML::Node& node) {
  return node.Mark().line + 1;
}

// The double nearest to the text, so that what the writer prints comes back unchanged. Nothing when
// it is not a number of 0 or more.
std::optional<double> parse_real(std::string_view text) {
  const auto number = Decimal::parse(text);
  if (!number || number->negative()) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return value;
}

// One mapping of the file: hands out its fields and, at the end, refuses those nobody asked for.
class Fields {
 public:
  // `what` is how messages call the mapping: "device 'gpu0'".
  Fields(const YAML::Node& node, std::string what) : node_(node), what_(std::move(what)) {
    if (!node.IsMap()) {
      fail_input("line {}: {}: expected a mapping of fields to values", line_of(node), what_);
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        fail_input("line {}: {}: expected a field's name", line_of(entry.first), what_);
      }
      if (!seen.insert(entry.first.Scalar()).second) {
        fail_input("line {}: {}: {}: is given twice", line_of(entry.first), what_,
                   entry.first.Scalar());
      }
    }
  }

  void rename(std::string what) { what_ = std::move(what); }
  const std::string& what() const { return what_; }
  int line() const { return line_of(node_); }

  // Not defined when the field is absent.
  YAML::Node find(const char* field) {
    asked_.emplace_back(field);
    return node_[field];
  }

  template <class... Args>
  [[noreturn]] void fail_field(const YAML::Node& value, const char* field,
                               fmt::format_string<Args...> expected, Args&&... args) const {
    fail_input("line {}: {}: {}: {}", value.IsDefined() ? line_of(value) : line(), what_, field,
               fmt::format(expected, std::forward<Args>(args)...));
  }

  std::optional<std::string> text(const char* field) {
    const YAML::Node value = find(field);
    if (!value.IsDefined()) return std::nullopt;
    if (!value.IsScalar()) fail_field(value, field, "expected a single value");
    return value.Scalar();
  }

  std::string required_text(const char* field, const char* example) {
    auto value = text(field);
    if (!value || value->empty()) {
      fail_field(node_[field], field, "is missing; expected one such as {}", example);
    }
    return *value;
  }

  std::optional<Decimal> decimal(const char* field) {
    const auto value = text(field);
    if (!value) return std::nullopt;
    const auto number = Decimal::parse(*value);
    if (!number || number->negative()) {
      fail_field(node_[field], field, "'{}': expected a number of 0 or more, in at most 18 digits",
                 *value);
    }
    return number;
  }

  std::optional<double> real(const char* field) {
    const auto value = text(field);
    if (!value) return std::nullopt;
    const auto number = parse_real(*value);
    if (!number) fail_field(node_[field], field, "'{}': expected a number of 0 or more", *value);
    return number;
  }

  std::optional<Nanoseconds> microseconds(const char* field) {
    const auto number = decimal(field);
    if (!number) return std::nullopt;
    const auto time = round_half_up(*number, 1000);
    if (!time) fail_field(node_[field], field, "is too large");
    return time;
  }

  std::optional<Bytes> memory(const char* field) {
    const auto value = text(field);
    if (!value) return std::nullopt;
    if (*value == "unlimited") return kUnlimited;
    const auto bytes = parse_bytes(*value);
    if (!bytes) {
      fail_field(node_[field], field, "'{}': expected a size such as 16GiB, or unlimited", *value);
    }
    return bytes;
  }

  std::optional<std::int64_t> bandwidth(const char* field) {
    const auto value = text(field);
    if (!value) return std::nullopt;
    const auto bytes = parse_bandwidth(*value);
    if (!bytes) fail_field(node_[field], field, "'{}': expected one such as 12GB/s", *value);
    return bytes;
  }

  std::optional<bool> flag(const char* field) {
    const auto value = text(field);
    if (!value) return std::nullopt;
    bool result = false;
    if (!YAML::convert<bool>::decode(node_[field], result)) {
      fail_field(node_[field], field, "'{}': expected true or false", *value);
    }
    return result;
  }

  std::optional<std::size_t> count(const char* field, std::size_t low, std::size_t high) {
    const auto value = text(field);
    if (!value) return std::nullopt;
    std::size_t result = 0;
    const auto parsed = std::from_chars(value->data(), value->data() + value->size(), result);
    if (parsed.ec != std::errc{} || parsed.ptr != value->data() + value->size() || result < low ||
        result > high) {
      fail_field(node_[field], field, "'{}': expected a whole number from {} to {}", *value, low,
                 high);
    }
    return result;
  }

  // A misspelt field must not be passed over in silence.
  void refuse_others() const {
    for (const auto& entry : node_) {
      const std::string& name = entry.first.Scalar();
      if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
      fail_input("line {}: {}: unknown field '{}'{}; expected one of: {}", line_of(entry.first),
                 what_, name, suggestion(name, asked_), fmt::join(asked_, ", "));
    }
  }

 private:
  const YAML::Node node_;
  std::string what_;
  std::vector<std::string> asked_;
};

std::map<std::string, double, std::less<>> read_peaks(const YAML::Node& node, const Fields& kind) {
  if (!node.IsMap()) kind.fail_field(node, "peak_flops", "expected dtypes with numbers per second");
  std::map<std::string, double, std::less<>> peaks;
  for (const auto& entry : node) {
    const std::string dtype = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const std::string text = entry.second.IsScalar() ? entry.second.Scalar() : "";
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

double read_curve_value(const YAML::Node& node, const CurveField& field, const Fields& curve) {
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
  Fields fields(node, fmt::format("kind '{}': curves", kind));
  for (std::size_t i = 0; i < kNumOpClasses; ++i) {
    const auto op_class = static_cast<OpClass>(i);
    const std::string name(op_class_name(op_class));
    const YAML::Node value = fields.find(name.c_str());
    if (!value.IsDefined()) continue;
    Fields curve(value, fmt::format("kind '{}': curves: {}", kind, name));
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

// A kind that has a built-in kind's name starts from that kind's figures.
DeviceKind read_kind(const std::string& name, const YAML::Node& node) {
  Fields fields(node, fmt::format("kind '{}'", name));
  const DeviceKind* built_in = find_device_kind(name);
  DeviceKind kind;
  if (built_in != nullptr) kind = *built_in;
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

void read_kinds(const YAML::Node& node, ClusterSpec& spec) {
  if (!node.IsDefined() || node.IsNull()) return;
  const Fields fields(node, "kinds");  // checks the names
  for (const auto& entry : node) {
    spec.kinds.push_back(read_kind(entry.first.Scalar(), entry.second));
  }
}

Bytes default_memory(const Fields& fields, const Device& device, const ClusterSpec& spec) {
  for (const DeviceKind& kind : spec.kinds) {
    if (kind.name == device.kind && kind.memory > 0) return kind.memory;
    if (kind.name == device.kind) {
      fail_input("line {}: {}: memory: is missing, and kind '{}' has none either", fields.line(),
                 fields.what(), device.kind);
    }
  }
  if (const DeviceKind* kind = find_device_kind(device.kind)) return kind->memory;
  std::vector<std::string> known;
  for (const DeviceKind& kind : spec.kinds) known.push_back(kind.name);
  for (const DeviceKind& kind : built_in_device_kinds()) known.push_back(kind.name);
  fail_input("line {}: {}: kind: '{}' is neither built in nor listed under kinds{}", fields.line(),
             fields.what(), device.kind, suggestion(device.kind, known));
}

void read_device(const YAML::Node& node, ClusterSpec& spec) {
  Fields fields(node, fmt::format("device {}", spec.devices.size()));
  Device device;
  device.name = fields.required_text("name", "gpu0");
  fields.rename(fmt::format("device '{}'", device.name));
  device.kind = fields.required_text("kind", "p100");
  const Bytes usual_memory = default_memory(fields, device, spec);
  device.memory = fields.memory("memory").value_or(usual_memory);
  device.gap = fields.microseconds("gap_us").value_or(0);
  device.slowdown = fields.decimal("slowdown").value_or(Decimal{1, 0});
  device.free_communication = fields.flag("free_communication").value_or(false);
  const auto count = fields.count("count", 1, Cluster::kMaxDevices);
  constexpr std::size_t kMaxStart = 1'000'000;
  const auto start = fields.count("start", 0, kMaxStart);
  fields.refuse_others();
  if (start && !count) {
    fail_input("line {}: {}: start: is given without a count", fields.line(), fields.what());
  }
  if (!count) {
    spec.devices.push_back(device);
    return;
  }
  const std::string stem = device.name;
  for (std::size_t i = 0; i < *count; ++i) {
    device.name = fmt::format("{}{}", stem, start.value_or(0) + i);
    spec.devices.push_back(device);
  }
}

void read_link(const YAML::Node& node, ClusterSpec& spec) {
  Fields fields(node, fmt::format("link {}", spec.links.size()));
  LinkRule rule;
  rule.from = fields.text("from").value_or("*");
  rule.to = fields.text("to").value_or("*");
  fields.rename(fmt::format("link {} -> {}", rule.from, rule.to));
  const auto bandwidth = fields.bandwidth("bandwidth");
  if (!bandwidth) {
    fail_input("line {}: {}: bandwidth: is missing; expected one such as 12GB/s", fields.line(),
               fields.what());
  }
  rule.bandwidth = *bandwidth;
  rule.latency = fields.microseconds("latency_us").value_or(0);
  rule.hold = fields.microseconds("hold_us").value_or(0);
  rule.channel = fields.text("channel").value_or("pair");
  rule.multicast = fields.flag("multicast").value_or(false);
  fields.refuse_others();
  spec.links.push_back(rule);
}

ClusterSpec read_spec(const YAML::Node& root) {
  Fields fields(root, "cluster");
  const std::string format = fields.required_text("format", kClusterFormat);
  if (format != kClusterFormat) {
    fields.fail_field(root["format"], "format", "'{}': expected {}", format, kClusterFormat);
  }
  ClusterSpec spec;
  spec.name = fields.text("name").value_or("cluster");
  read_kinds(fields.find("kinds"), spec);
  const YAML::Node devices = fields.find("devices");
  const YAML::Node links = fields.find("links");
  fields.refuse_others();
  if (!devices.IsDefined() || !devices.IsSequence() || devices.size() == 0) {
    fields.fail_field(devices, "devices", "expected a list of one device or more");
  }
  for (const auto& device : devices) read_device(device, spec);
  if (!links.IsDefined() || links.IsNull()) return spec;
  if (!links.IsSequence()) fields.fail_field(links, "links", "expected a list of rules");
  for (const auto& link : links) read_link(link, spec);
  return spec;
}

}  // namespace

Cluster read_cluster_yaml(const std::string& text) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    fail_input("line {}: is not YAML: {}", error.mark.line + 1, error.msg);
  }
  if (documents.empty()) fail_input("the file is empty; expected an {} document", kClusterFormat);
  if (documents.size() > 1) {
    fail_input("line {}: expected one document, found {}", line_of(documents[1]), documents.size());
  }
  return Cluster(read_spec(documents[0]));
}

}  // namespace emplace
