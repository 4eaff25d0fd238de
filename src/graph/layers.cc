#include "graph/layers.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace emplace {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

// "a.b.c": "a", "a.b" and "a.b.c".
template <class Visit>
void for_each_prefix(std::string_view name, Visit visit) {
  for (std::size_t end = name.find('.');; end = name.find('.', end + 1)) {
    visit(name.substr(0, end));
    if (end == std::string_view::npos) return;
  }
}

std::string_view parent(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

// What has two or more numbered parts, the model itself (an empty name) included.
std::set<std::string_view> find_stacks(const Modules& modules) {
  std::map<std::string_view, std::set<std::string_view>> numbered;
  for (const std::string& name : modules.names) {
    for_each_prefix(name, [&](std::string_view prefix) {
      if (is_number(last_part(prefix))) numbered[parent(prefix)].insert(prefix);
    });
  }
  std::set<std::string_view> stacks;
  for (const auto& [name, parts] : numbered) {
    if (parts.size() > 1) stacks.insert(name);
  }
  return stacks;
}

// The longest name that all modules begin with, which may be one of theirs.
std::string_view common_prefix(const Modules& modules) {
  std::map<std::string_view, std::uint32_t> count;
  std::uint32_t named = 0;
  for (const std::string& name : modules.names) {
    if (name.empty()) continue;
    ++named;
    for_each_prefix(name, [&](std::string_view prefix) { ++count[prefix]; });
  }
  std::string_view longest;
  for (const auto& [prefix, times] : count) {
    if (times == named && prefix.size() > longest.size()) longest = prefix;
  }
  return longest;
}

}  // namespace

std::vector<std::string> layers_of_modules(const Modules& modules) {
  const std::set<std::string_view> stacks = find_stacks(modules);
  std::set<std::string_view> around;  // stacks, and what they are in
  for (const std::string_view stack : stacks) {
    if (!stack.empty()) for_each_prefix(stack, [&](std::string_view name) { around.insert(name); });
  }
  for_each_prefix(common_prefix(modules), [&](std::string_view name) { around.insert(name); });
  std::vector<std::string> layers;
  for (const std::string& name : modules.names) {
    std::string_view layer = name;  // its own where it is around layers
    bool found = name.empty();
    for_each_prefix(name, [&](std::string_view prefix) {
      const bool block = is_number(last_part(prefix)) && stacks.contains(parent(prefix));
      if (found || (!block && around.contains(prefix))) return;
      layer = prefix;
      found = true;
    });
    layers.emplace_back(layer);
  }
  return layers;
}

}  // namespace emplace
