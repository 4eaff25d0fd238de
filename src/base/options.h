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
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
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

// What does not depend on the type of the options: a value is where it lies in them.
class OptionTable {
 public:
  std::vector<OptionInfo> describe() const;

 protected:
  using Texts = std::initializer_list<std::string_view>;
  struct Named {
    std::string_view name;
    std::int64_t value;
  };
  // How a value with names is read and written as a number.
  struct NamedAccess {
    std::int64_t (*get)(const void*);
    void (*set)(void*, std::int64_t);
  };
  struct Place {
    std::size_t offset;
    const void* defaults;  // options with every value at its default
  };

  void add_integer(std::string_view name, Place place, std::int64_t low, std::int64_t high,
                   std::string_view help);
  void add_real(std::string_view name, Place place, double low, double high, std::string_view help);
  void add_flag(std::string_view name, Place place, std::string_view help);
  void add_choice(std::string_view name, Place place, std::vector<std::string> choices,
                  std::string_view help);
  void add_named(std::string_view name, Place place, NamedAccess access, const Named* choices,
                 std::size_t count, std::string_view help);
  void add_text(std::string_view name, Place place, std::string_view range, std::string_view help);
  // `options` are at their defaults.
  void assign_all(void* options, const OptionValues& values) const;
  void add_paper(std::initializer_list<std::pair<std::string_view, std::string_view>> values,
                 void* scratch);

 private:
  struct Entry {
    OptionInfo info;
    std::function<void(void* options, std::string_view text)> assign;
  };
  void add(OptionInfo info, std::function<void(void*, std::string_view)> assign);
  const Entry& find(std::string_view name) const;

  std::vector<Entry> entries_;
  OptionValues paper_;
  bool has_paper_ = false;
};

template <class Options>
class OptionSchema : public OptionTable {
 public:
  template <class Access>
  requires Binds<Access, Options, std::int64_t> OptionSchema &&
      integer(std::string_view name, Access access, std::int64_t low, std::int64_t high,
              std::string_view help) {
    add_integer(name, place_of(access), low, high, help);
    return std::move(*this);
  }

  template <class Access>
  requires Binds<Access, Options, double> OptionSchema &&
      real(std::string_view name, Access access, double low, double high, std::string_view help) {
    add_real(name, place_of(access), low, high, help);
    return std::move(*this);
  }

  template <class Access>
  requires Binds<Access, Options, bool> OptionSchema &&
      flag(std::string_view name, Access access, std::string_view help) {
    add_flag(name, place_of(access), help);
    return std::move(*this);
  }

  template <class Access>
  requires Binds<Access, Options, std::string> OptionSchema &&
      choice(std::string_view name, Access access, Texts choices, std::string_view help) {
    add_choice(name, place_of(access), {choices.begin(), choices.end()}, help);
    return std::move(*this);
  }
  template <class Access>
  requires Binds<Access, Options, std::string> OptionSchema &&
      choice(std::string_view name, Access access, const std::vector<std::string>& choices,
             std::string_view help) {
    add_choice(name, place_of(access), choices, help);
    return std::move(*this);
  }

  // Names of values of an enum or of a flag. The default must be one of them.
  template <class Access, class Value = BoundValue<Access, Options>>
  requires(std::is_enum_v<Value> || std::same_as<Value, bool>) OptionSchema && choice(
      std::string_view name, Access access,
      std::initializer_list<std::pair<std::string_view, std::type_identity_t<Value>>> choices,
      std::string_view help) {
    std::vector<Named> named;
    for (const auto& [choice, value] : choices) {
      named.push_back({choice, static_cast<std::int64_t>(value)});
    }
    const NamedAccess as_number = {
        [](const void* at) { return static_cast<std::int64_t>(*static_cast<const Value*>(at)); },
        [](void* at, std::int64_t value) { *static_cast<Value*>(at) = static_cast<Value>(value); }};
    add_named(name, place_of(access), as_number, named.data(), named.size(), help);
    return std::move(*this);
  }

  // Anything; `range` says what is expected.
  template <class Access>
  requires Binds<Access, Options, std::string> OptionSchema &&
      text(std::string_view name, Access access, std::string_view range, std::string_view help) {
    add_text(name, place_of(access), range, help);
    return std::move(*this);
  }

  // What a published system's own settings are, where they are not the defaults. Adds the option
  // `preset`: `paper` begins with these values, `emplace` with the defaults; options that are given
  // beside it take precedence. Comes after the options that it names.
  OptionSchema&& paper(
      std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
    Options scratch;
    add_paper(values, &scratch);
    return std::move(*this);
  }

  // The defaults with these values in their place.
  Options read(const OptionValues& values) const {
    Options options;
    assign_all(&options, values);
    return options;
  }

 private:
  template <class Access>
  Place place_of(const Access& access) {
    auto* const value = reinterpret_cast<const std::byte*>(&std::invoke(access, defaults_));
    return {static_cast<std::size_t>(value - reinterpret_cast<const std::byte*>(&defaults_)),
            &defaults_};
  }

  Options defaults_ = {};
};

}  // namespace emplace
