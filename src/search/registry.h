// The placers that exist, by key. Filled by a generated list (cmake/placers.cmake), so nothing is
// lost in a static library and nothing depends on the order of initialisation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace emplace {

class Placer;

struct PlacerInfo {
  std::string key;
  std::string family;     // heuristic, partition, search, exact, learned
  std::string summary;    // one line
  std::string reference;  // the paper
  bool randomized = false;
  std::vector<OptionInfo> options = {};
};

// "heft(insertion=false)" taken apart.
struct PlacerSpec {
  std::string key;
  OptionValues options;

  // Throws an Error that shows where the text stops making sense.
  static PlacerSpec parse(std::string_view text);
  std::string to_string() const;

  friend bool operator==(const PlacerSpec& a, const PlacerSpec& b) = default;
};

class PlacerRegistry {
 public:
  template <class Class>
  void add(PlacerInfo info) {
    info.options = Class::schema().describe();
    entries_.push_back({std::move(info), [](const OptionValues& values) -> std::unique_ptr<Placer> {
                          return std::make_unique<Class>(Class::schema().read(values));
                        }});
  }

  // In the order of family and key.
  std::vector<const PlacerInfo*> list() const;
  // Throws an Error with the nearest known key when there is no such placer.
  const PlacerInfo& info(std::string_view key) const;
  // Throws an Error when the key or an option is unknown, or a value out of its range.
  std::unique_ptr<Placer> make(const PlacerSpec& spec) const;

 private:
  struct Entry {
    PlacerInfo info;
    std::function<std::unique_ptr<Placer>(const OptionValues&)> make;
  };
  const Entry& find(std::string_view key) const;

  std::vector<Entry> entries_;
};

}  // namespace emplace
