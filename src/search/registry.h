// Methods that exist, by key: placers, ways to partition. Filled by generated lists
// (cmake/methods.cmake), so nothing is lost in a static library and nothing depends on the order of
// initialisation.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <emplace/search.h>

#include "base/error.h"
#include "base/options.h"

#include "search/method_spec.h"

namespace emplace {

template <class Method>
class Registry {
 public:
  // `what` names a method in errors: "placer".
  explicit Registry(std::string what) : what_(std::move(what)) {}

  // `Class` has `Options` and a static `schema()`.
  template <class Class>
  void add(MethodInfo info) {
    info.options = Class::schema().describe();
    entries_.push_back({std::move(info), [](const OptionValues& values) -> std::unique_ptr<Method> {
                          return std::make_unique<Class>(Class::schema().read(values));
                        }});
  }

  // In the order of family and key.
  std::vector<const MethodInfo*> list() const {
    std::vector<const MethodInfo*> result;
    for (const Entry& entry : entries_) result.push_back(&entry.info);
    std::sort(result.begin(), result.end(), [](const MethodInfo* a, const MethodInfo* b) {
      return std::tie(a->family, a->key) < std::tie(b->family, b->key);
    });
    return result;
  }

  // Throws an Error with the nearest known key when there is no such method.
  const MethodInfo& info(std::string_view key) const { return find(key).info; }

  // Throws an Error when the key or an option is unknown, or a value out of its range.
  std::unique_ptr<Method> make(const MethodSpec& spec) const {
    const Entry& entry = find(spec.key);
    return with_context(what_ + " '" + spec.key + "'", [&] { return entry.make(spec.options); });
  }

 private:
  struct Entry {
    MethodInfo info;
    std::function<std::unique_ptr<Method>(const OptionValues&)> make;
  };

  const Entry& find(std::string_view key) const {
    std::vector<std::string> known;
    for (const Entry& entry : entries_) {
      if (entry.info.key == key) return entry;
      known.push_back(entry.info.key);
    }
    std::sort(known.begin(), known.end());
    fail_option("unknown {} '{}'{}; expected one of: {}", what_, key, suggestion(key, known),
                fmt::join(known, ", "));
  }

  std::string what_;
  std::vector<Entry> entries_;
};

}  // namespace emplace
