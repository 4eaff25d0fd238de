#include "search/spec_in_effect.h"

#include <cstdint>
#include <limits>

#include "base/error.h"

namespace emplace {
namespace {

// One text for each value: 0.50 is 0.5, and yes is true.
std::string as_written(const OptionInfo& option, const std::string& value) {
  if (option.type == "flag") return read_flag(option.name, value) ? "true" : "false";
  using Integers = std::numeric_limits<std::int64_t>;
  using Reals = std::numeric_limits<double>;
  if (option.type == "integer") {
    return fmt::format("{}", read_integer(option.name, value, Integers::min(), Integers::max()));
  }
  if (option.type == "real") {
    return fmt::format("{}", read_real(option.name, value, Reals::lowest(), Reals::max()));
  }
  return value;
}

}  // namespace

MethodSpec in_effect(const MethodSpec& spec, const std::vector<OptionInfo>& options) {
  const auto given = [&](const std::string& name) -> const std::string* {
    const std::string* last = nullptr;
    for (const auto& [option, value] : spec.options) {
      if (option == name) last = &value;
    }
    return last;
  };
  const std::string* preset = given("preset");
  const bool paper = preset != nullptr && *preset == "paper";
  MethodSpec result{spec.key, {}};
  for (const OptionInfo& option : options) {
    if (option.name == "preset") continue;
    const std::string* own = given(option.name);
    const std::string value = as_written(option, own     ? *own
                                                 : paper ? option.paper
                                                         : option.default_value);
    if (value != as_written(option, option.default_value)) {
      result.options.emplace_back(option.name, value);
    }
  }
  return result;
}

}  // namespace emplace
