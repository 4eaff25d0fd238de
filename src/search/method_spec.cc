#include "search/method_spec.h"

#include "base/error.h"
#include "base/text.h"

namespace emplace {

MethodSpec MethodSpec::parse(std::string_view text) {
  const std::string_view whole = trim(text);
  const std::size_t open = whole.find('(');
  MethodSpec spec{std::string(trim(whole.substr(0, open))), {}};
  if (spec.key.empty())
    fail_option("'{}': expected a name such as heft or metis(imbalance=1.1)", text);
  if (open == std::string_view::npos) return spec;
  if (whole.back() != ')') fail_option("'{}': expected ')' at the end", text);
  std::string_view rest = whole.substr(open + 1, whole.size() - open - 2);
  while (!trim(rest).empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || trim(item.substr(0, equals)).empty()) {
      fail_option("'{}': expected option=value instead of '{}'", text, trim(item));
    }
    spec.options.emplace_back(trim(item.substr(0, equals)), trim(item.substr(equals + 1)));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return spec;
}

std::string MethodSpec::to_string() const {
  if (options.empty()) return key;
  std::vector<std::string> items;
  for (const auto& [name, value] : options) items.push_back(name + "=" + value);
  return fmt::format("{}({})", key, fmt::join(items, ","));
}

std::vector<std::string> split_specs(std::string_view text) {
  std::vector<std::string> specs{""};
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      specs.emplace_back();
    } else {
      specs.back() += c;
    }
  }
  return specs;
}

}  // namespace emplace
