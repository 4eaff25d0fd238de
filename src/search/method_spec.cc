// Within quotes, single or double, commas and parentheses are part of a value; quotes around the
// whole value are not.
#include "search/method_spec.h"

#include "base/error.h"
#include "base/text.h"

namespace emplace {
namespace {

// Where the quotation that begins at `open` ends; nowhere if nothing closes it, in which case the
// character stands for itself.
std::size_t closing_quote(std::string_view text, std::size_t open) {
  if (text[open] != '\'' && text[open] != '"') return std::string_view::npos;
  return text.find(text[open], open + 1);
}

// The parts between the commas that are outside quotes and parentheses.
std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (const std::size_t end = closing_quote(text, i); end != std::string_view::npos) {
      i = end;
    } else if (text[i] == ',' && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// Without the quotes, where one pair encloses all of it.
std::string_view unquoted(std::string_view value) {
  if (value.size() < 2 || closing_quote(value, 0) != value.size() - 1) return value;
  return value.substr(1, value.size() - 2);
}

// As it must be written to be read as this value: plainly, or in quotes that it does not contain.
std::string written(const std::string& value) {
  const bool plain = value.find_first_of(",()'\"") == std::string::npos && trim(value) == value;
  for (const char quote : {'\'', '"'}) {
    if (!plain && value.find(quote) == std::string::npos) return quote + value + quote;
  }
  return value;
}

}  // namespace

MethodSpec MethodSpec::parse(std::string_view text) {
  const std::string_view whole = trim(text);
  const std::size_t open = whole.find('(');
  MethodSpec spec{std::string(trim(whole.substr(0, open))), {}};
  if (spec.key.empty())
    fail_option("'{}': expected a name such as heft or metis(imbalance=1.1)", text);
  if (open == std::string_view::npos) return spec;
  if (whole.back() != ')') fail_option("'{}': expected ')' at the end", text);
  const std::string_view inside = whole.substr(open + 1, whole.size() - open - 2);
  if (trim(inside).empty()) return spec;
  std::vector<std::string_view> items = split_at_commas(inside);
  if (trim(items.back()).empty()) items.pop_back();
  for (const std::string_view item : items) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || trim(item.substr(0, equals)).empty()) {
      fail_option("'{}': expected option=value instead of '{}'", text, trim(item));
    }
    spec.options.emplace_back(trim(item.substr(0, equals)),
                              unquoted(trim(item.substr(equals + 1))));
  }
  return spec;
}

std::string MethodSpec::to_string() const {
  if (options.empty()) return key;
  std::vector<std::string> items;
  for (const auto& [name, value] : options) items.push_back(name + "=" + written(value));
  return fmt::format("{}({})", key, fmt::join(items, ","));
}

std::vector<std::string> split_specs(std::string_view text) {
  const std::vector<std::string_view> parts = split_at_commas(text);
  return {parts.begin(), parts.end()};
}

}  // namespace emplace
