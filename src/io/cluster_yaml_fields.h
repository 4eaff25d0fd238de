// The fields of a cluster file, one mapping at a time: each is asked for by name, and at the end
// those that nobody asked for are refused. Errors name the line, the mapping and the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "base/decimal.h"
#include "base/error.h"
#include "base/units.h"

namespace emplace {

inline int line_of(const YAML::Node& node) {
  return node.Mark().line + 1;
}

// The one document of a text; `format` is what it should be. Throws an Error where there are none
// or several, or the text is no YAML.
YAML::Node load_yaml(const std::string& text, std::string_view format);

// The double nearest to the text, so that what the writer prints comes back unchanged. Nothing when
// it is not a number of 0 or more.
std::optional<double> parse_real(std::string_view text);

class YamlFields {
 public:
  // `what` is how messages call the mapping: "device 'gpu0'".
  YamlFields(const YAML::Node& node, std::string what);

  void rename(std::string what) { what_ = std::move(what); }
  const std::string& what() const { return what_; }
  int line() const { return line_of(node_); }

  // Not defined when the field is absent.
  YAML::Node find(const char* field);

  template <class... Args>
  [[noreturn]] void fail_field(const YAML::Node& value, const char* field,
                               fmt::format_string<Args...> expected, Args&&... args) const {
    fail_input("line {}: {}: {}: {}", value.IsDefined() ? line_of(value) : line(), what_, field,
               fmt::format(expected, std::forward<Args>(args)...));
  }

  // Nothing when the field is absent.
  std::optional<std::string> text(const char* field);
  std::optional<std::string> list(const char* field);  // "a, b" and [a, b] are "a,b"
  // "a, b" is one, [a, b] are two; none when the field is absent.
  std::vector<std::string> texts(const char* field);
  std::optional<Decimal> decimal(const char* field);
  std::optional<double> real(const char* field);
  std::optional<Nanoseconds> microseconds(const char* field);
  std::optional<Bytes> memory(const char* field);
  std::optional<std::int64_t> bandwidth(const char* field);
  std::optional<bool> flag(const char* field);
  std::optional<std::size_t> count(const char* field, std::size_t low, std::size_t high);

  std::string required_text(const char* field, const char* example);
  // The entries of a list of mappings; none when the field is absent.
  std::vector<YAML::Node> entries(const char* field, const char* expected);

  // A misspelt field must not be passed over in silence.
  void refuse_others() const;

 private:
  const YAML::Node node_;
  std::string what_;
  std::vector<std::string> asked_;
};

}  // namespace emplace
