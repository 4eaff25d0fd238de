#include "search/registry.h"

#include <algorithm>

#include "base/text.h"

#include "placer/placer.h"

namespace emplace {
PlacerSpec PlacerSpec::parse(std::string_view text) {
  const std::string_view whole = trim(text);
  const std::size_t open = whole.find('(');
  PlacerSpec spec{std::string(trim(whole.substr(0, open))), {}};
  if (spec.key.empty())
    fail_option("placer '{}': expected a name such as heft or metis(imbalance=1.1)", text);
  if (open == std::string_view::npos) return spec;
  if (whole.back() != ')') fail_option("placer '{}': expected ')' at the end", text);
  std::string_view rest = whole.substr(open + 1, whole.size() - open - 2);
  while (!trim(rest).empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || trim(item.substr(0, equals)).empty()) {
      fail_option("placer '{}': expected option=value instead of '{}'", text, trim(item));
    }
    spec.options.emplace_back(trim(item.substr(0, equals)), trim(item.substr(equals + 1)));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return spec;
}

std::string PlacerSpec::to_string() const {
  if (options.empty()) return key;
  std::vector<std::string> items;
  for (const auto& [name, value] : options) items.push_back(name + "=" + value);
  return fmt::format("{}({})", key, fmt::join(items, ","));
}

std::vector<const PlacerInfo*> PlacerRegistry::list() const {
  std::vector<const PlacerInfo*> result;
  for (const Entry& entry : entries_) result.push_back(&entry.info);
  std::sort(result.begin(), result.end(), [](const PlacerInfo* a, const PlacerInfo* b) {
    return std::tie(a->family, a->key) < std::tie(b->family, b->key);
  });
  return result;
}

const PlacerRegistry::Entry& PlacerRegistry::find(std::string_view key) const {
  std::vector<std::string> known;
  for (const Entry& entry : entries_) {
    if (entry.info.key == key) return entry;
    known.push_back(entry.info.key);
  }
  std::sort(known.begin(), known.end());
  fail_option("unknown placer '{}'{}; expected one of: {}", key, suggestion(key, known),
              fmt::join(known, ", "));
}

const PlacerInfo& PlacerRegistry::info(std::string_view key) const {
  return find(key).info;
}

std::unique_ptr<Placer> PlacerRegistry::make(const PlacerSpec& spec) const {
  const Entry& entry = find(spec.key);
  return with_context("placer '" + spec.key + "'", [&] { return entry.make(spec.options); });
}

}  // namespace emplace
