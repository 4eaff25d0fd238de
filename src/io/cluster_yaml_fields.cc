#include "io/cluster_yaml_fields.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/parser.h>

#include "base/options.h"

namespace emplace {
namespace {

// Hears where each document begins, and whether there is anything in it.
class DocumentCounter final : public YAML::EventHandler {
 public:
  int line() const { return line_; }
  bool empty() const { return empty_; }

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { empty_ = false; }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {
    empty_ = false;
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    empty_ = false;
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    empty_ = false;
  }
  void OnMapEnd() override {}

 private:
  int line_ = 1;
  bool empty_ = true;
};

}  // namespace

// Not YAML::LoadAll, which takes a comma at the start for documents without end (yaml-cpp 0.7).
YAML::Node load_yaml(const std::string& text, std::string_view format) {
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    DocumentCounter first;
    const bool any = parser.HandleNextDocument(first);
    DocumentCounter second;
    if (any && parser.HandleNextDocument(second)) {
      fail_input("line {}: expected one document, and another begins here", second.line());
    }
    if (!any || first.empty()) fail_input("the file is empty; expected an {} document", format);
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    fail_input("line {}: is not YAML: {}", error.mark.line + 1, error.msg);
  }
}

std::optional<double> parse_real(std::string_view text) {
  const auto number = Decimal::parse(text);
  if (!number || number->negative()) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return value;
}

YamlFields::YamlFields(const YAML::Node& node, std::string what)
    : node_(node), what_(std::move(what)) {
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

YAML::Node YamlFields::find(const char* field) {
  asked_.emplace_back(field);
  return node_[field];
}

std::optional<std::string> YamlFields::text(const char* field) {
  const YAML::Node value = find(field);
  if (!value.IsDefined()) return std::nullopt;
  if (!value.IsScalar()) fail_field(value, field, "expected a single value");
  return value.Scalar();
}

std::optional<std::string> YamlFields::list(const char* field) {
  const YAML::Node value = find(field);
  if (!value.IsDefined()) return std::nullopt;
  if (value.IsScalar()) return value.Scalar();
  std::string joined;
  for (const auto& entry : value) {
    if (!value.IsSequence() || !entry.IsScalar()) break;
    joined += (joined.empty() ? "" : ",") + entry.Scalar();
  }
  if (joined.empty()) fail_field(value, field, "expected a name, a pattern, or a list of them");
  return joined;
}

std::vector<std::string> YamlFields::texts(const char* field) {
  const YAML::Node value = find(field);
  if (!value.IsDefined()) return {};
  if (!value.IsSequence()) return {*text(field)};
  std::vector<std::string> all;
  for (const auto& entry : value) {
    if (!entry.IsScalar()) fail_field(value, field, "expected a single value, or a list of them");
    all.push_back(entry.Scalar());
  }
  return all;
}

std::string YamlFields::required_text(const char* field, const char* example) {
  auto value = text(field);
  if (!value || value->empty()) {
    fail_field(node_[field], field, "is missing; expected one such as {}", example);
  }
  return *value;
}

std::optional<Decimal> YamlFields::decimal(const char* field) {
  const auto value = text(field);
  if (!value) return std::nullopt;
  const auto number = Decimal::parse(*value);
  if (!number || number->negative()) {
    fail_field(node_[field], field, "'{}': expected a number of 0 or more, in at most 18 digits",
               *value);
  }
  return number;
}

std::optional<double> YamlFields::real(const char* field) {
  const auto value = text(field);
  if (!value) return std::nullopt;
  const auto number = parse_real(*value);
  if (!number) fail_field(node_[field], field, "'{}': expected a number of 0 or more", *value);
  return number;
}

std::optional<Nanoseconds> YamlFields::microseconds(const char* field) {
  const auto number = decimal(field);
  if (!number) return std::nullopt;
  const auto time = round_half_up(*number, 1000);
  if (!time) fail_field(node_[field], field, "is too large");
  return time;
}

std::optional<Bytes> YamlFields::memory(const char* field) {
  const auto value = text(field);
  if (!value) return std::nullopt;
  if (*value == "unlimited") return kUnlimited;
  const auto bytes = parse_bytes(*value);
  if (!bytes) {
    fail_field(node_[field], field, "'{}': expected a size such as 16GiB, or unlimited", *value);
  }
  return bytes;
}

std::optional<std::int64_t> YamlFields::bandwidth(const char* field) {
  const auto value = text(field);
  if (!value) return std::nullopt;
  const auto bytes = parse_bandwidth(*value);
  if (!bytes) {
    fail_field(node_[field], field,
               "'{}': expected bytes or bits per second, such as 12GB/s or 100Gb/s", *value);
  }
  return bytes;
}

std::optional<bool> YamlFields::flag(const char* field) {
  const auto value = text(field);
  if (!value) return std::nullopt;
  bool result = false;
  if (!YAML::convert<bool>::decode(node_[field], result)) {
    fail_field(node_[field], field, "'{}': expected true or false", *value);
  }
  return result;
}

std::optional<std::size_t> YamlFields::count(const char* field, std::size_t low, std::size_t high) {
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

std::vector<YAML::Node> YamlFields::entries(const char* field, const char* expected) {
  const YAML::Node value = find(field);
  if (!value.IsDefined() || value.IsNull()) return {};
  if (!value.IsSequence()) fail_field(value, field, "expected {}", expected);
  return {value.begin(), value.end()};
}

void YamlFields::refuse_others() const {
  for (const auto& entry : node_) {
    const std::string& name = entry.first.Scalar();
    if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    fail_input("line {}: {}: unknown field '{}'{}; expected one of: {}", line_of(entry.first),
               what_, name, suggestion(name, asked_), fmt::join(asked_, ", "));
  }
}

}  // namespace emplace
