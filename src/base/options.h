// Options declared once: name, member, range, default (the member's own), help. The command line,
// the docs and the spec strings all read the declaration.
//
//   struct Options { double balance = 1.03; bool refine = true; };
//   static OptionSchema<Options> schema() {
//     return OptionSchema<Options>{}
//         .real("balance", &Options::balance, 1, 10, "Largest part over the mean.")
//         .flag("refine", &Options::refine, "Refine the cut.");
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <emplace/search.h>

#include "base/error.h"

namespace emplace {

// Each reads a value and throws an Error that names the option and what was expected.
std::int64_t read_integer(std::string_view name, std::string_view text, std::int64_t low,
                          std::int64_t high);
double read_real(std::string_view name, std::string_view text, double low, double high);
bool read_flag(std::string_view name, std::string_view text);
const std::string& read_choice(std::string_view name, std::string_view text,
                               const std::vector<std::string>& choices);

// The known name nearest to `name`, as " (did you mean 'x'?)", or nothing when none is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& known);

template <class Options>
class OptionSchema {
 public:
  OptionSchema integer(std::string name, std::int64_t Options::*member, std::int64_t low,
                       std::int64_t high, std::string help) {
    add({name, "integer", fmt::format("{}", defaults().*member), fmt::format("{} to {}", low, high),
         std::move(help)},
        [=](Options& options, std::string_view text) {
          options.*member = read_integer(name, text, low, high);
        });
    return std::move(*this);
  }

  OptionSchema real(std::string name, double Options::*member, double low, double high,
                    std::string help) {
    add({name, "real", fmt::format("{}", defaults().*member), fmt::format("{} to {}", low, high),
         std::move(help)},
        [=](Options& options, std::string_view text) {
          options.*member = read_real(name, text, low, high);
        });
    return std::move(*this);
  }

  OptionSchema flag(std::string name, bool Options::*member, std::string help) {
    add({name, "flag", fmt::format("{}", defaults().*member), "true, false", std::move(help)},
        [=](Options& options, std::string_view text) { options.*member = read_flag(name, text); });
    return std::move(*this);
  }

  OptionSchema choice(std::string name, std::string Options::*member,
                      std::vector<std::string> choices, std::string help) {
    add({name, "choice", defaults().*member, fmt::format("{}", fmt::join(choices, ", ")),
         std::move(help)},
        [=](Options& options, std::string_view text) {
          options.*member = read_choice(name, text, choices);
        });
    return std::move(*this);
  }

  // Anything; `range` says what is expected.
  OptionSchema text(std::string name, std::string Options::*member, std::string range,
                    std::string help) {
    add({name, "text", defaults().*member, std::move(range), std::move(help)},
        [=](Options& options, std::string_view text) { options.*member = std::string(text); });
    return std::move(*this);
  }

  // The defaults with these values in their place.
  Options read(const OptionValues& values) const {
    Options options;
    for (const auto& [name, text] : values) find(name).assign(options, text);
    return options;
  }

  std::vector<OptionInfo> describe() const {
    std::vector<OptionInfo> result;
    for (const Entry& entry : entries_) result.push_back(entry.info);
    return result;
  }

 private:
  struct Entry {
    OptionInfo info;
    std::function<void(Options&, std::string_view)> assign;
  };

  void add(OptionInfo info, std::function<void(Options&, std::string_view)> assign) {
    entries_.push_back({std::move(info), std::move(assign)});
  }

  static const Options& defaults() {
    static const Options options;
    return options;
  }

  const Entry& find(const std::string& name) const {
    std::vector<std::string> known;
    for (const Entry& entry : entries_) {
      if (entry.info.name == name) return entry;
      known.push_back(entry.info.name);
    }
    if (known.empty()) fail_option("unknown option '{}': there are no options here", name);
    fail_option("unknown option '{}'{}; expected one of: {}", name, suggestion(name, known),
                fmt::join(known, ", "));
  }

  std::vector<Entry> entries_;
};

}  // namespace emplace
