// Options declared once: name, member, range, default (the member's own), help. The command line,
// the docs and the spec strings all read the declaration.
//
//   struct Options { double balance = 1.03; bool refine = true; Settings inner = {}; };
//   static OptionSchema<Options> schema() {
//     return OptionSchema<Options>{}
//         .real("balance", &Options::balance, 1, 10, "Largest part over the mean.")
//         .flag("refine", &Options::refine, "Refine the cut.")
//         .integer("rounds", nested(&Options::inner, &Settings::rounds), 1, 100, "Of refinement.")
//         .choice("order", nested(&Options::inner, &Settings::order),
//                 {{"time", Order::kTime}, {"bytes", Order::kBytes}}, "Of the parts.");
//   }
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <emplace/search.h>

#include "base/check.h"
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

// A member of a member, and so on: what to bind in place of a member of the options themselves.
template <class First, class... Rest>
constexpr auto nested(First first, Rest... rest) {
  return [=](auto& object) -> auto& {
    if constexpr (sizeof...(rest) == 0) {
      return std::invoke(first, object);
    } else {
      return nested(rest...)(std::invoke(first, object));
    }
  };
}

// What finds a value in options: a pointer to a member, nested(...), or a function.
template <class Access, class Options>
using BoundValue = std::remove_reference_t<std::invoke_result_t<const Access&, Options&>>;
template <class Access, class Options, class Value>
concept Binds = std::same_as<std::invoke_result_t<const Access&, Options&>, Value&>;

template <class Options>
class OptionSchema {
 public:
  template <class Access>
  requires Binds<Access, Options, std::int64_t> OptionSchema
  integer(std::string name, Access access, std::int64_t low, std::int64_t high, std::string help) {
    add({name, "integer", fmt::format("{}", default_of(access)), fmt::format("{} to {}", low, high),
         std::move(help)},
        [=](Options& options, std::string_view text) {
          std::invoke(access, options) = read_integer(name, text, low, high);
        });
    return std::move(*this);
  }

  template <class Access>
  requires Binds<Access, Options, double> OptionSchema real(std::string name, Access access,
                                                            double low, double high,
                                                            std::string help) {
    add({name, "real", fmt::format("{}", default_of(access)), fmt::format("{} to {}", low, high),
         std::move(help)},
        [=](Options& options, std::string_view text) {
          std::invoke(access, options) = read_real(name, text, low, high);
        });
    return std::move(*this);
  }

  template <class Access>
  requires Binds<Access, Options, bool> OptionSchema flag(std::string name, Access access,
                                                          std::string help) {
    add({name, "flag", fmt::format("{}", default_of(access)), "true, false", std::move(help)},
        [=](Options& options, std::string_view text) {
          std::invoke(access, options) = read_flag(name, text);
        });
    return std::move(*this);
  }

  template <class Access>
  requires Binds<Access, Options, std::string> OptionSchema choice(std::string name, Access access,
                                                                   std::vector<std::string> choices,
                                                                   std::string help) {
    add({name, "choice", default_of(access), fmt::format("{}", fmt::join(choices, ", ")),
         std::move(help)},
        [=](Options& options, std::string_view text) {
          std::invoke(access, options) = read_choice(name, text, choices);
        });
    return std::move(*this);
  }

  // Names of values of an enum, or of whatever else is bound. The default must be one of them.
  template <class Access, class Value = BoundValue<Access, Options>>
  requires(!std::same_as<Value, std::string>) OptionSchema
      choice(std::string name, Access access,
             std::vector<std::pair<std::string, std::type_identity_t<Value>>> choices,
             std::string help) {
    std::vector<std::string> names;
    std::string default_name;
    for (const auto& [choice, value] : choices) {
      names.push_back(choice);
      if (value == default_of(access)) default_name = choice;
    }
    EMPLACE_CHECK(!default_name.empty());
    add({name, "choice", default_name, fmt::format("{}", fmt::join(names, ", ")), std::move(help)},
        [=](Options& options, std::string_view text) {
          const std::string& chosen = read_choice(name, text, names);
          for (const auto& [choice, value] : choices) {
            if (choice == chosen) std::invoke(access, options) = value;
          }
        });
    return std::move(*this);
  }

  // Anything; `range` says what is expected.
  template <class Access>
  requires Binds<Access, Options, std::string> OptionSchema text(std::string name, Access access,
                                                                 std::string range,
                                                                 std::string help) {
    add({name, "text", default_of(access), std::move(range), std::move(help)},
        [=](Options& options, std::string_view value) {
          std::invoke(access, options) = std::string(value);
        });
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

  template <class Access>
  static BoundValue<Access, Options> default_of(const Access& access) {
    Options options;
    return std::invoke(access, options);
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
