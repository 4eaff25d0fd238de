// The texts that ask for models of the zoo, apart from what models there are.
#pragma once

#include <string>
#include <string_view>

#include "base/options.h"

namespace emplace::zoo {

inline constexpr std::string_view kZoo = "zoo:";
inline constexpr std::string_view kFamily = "family:";

// Of a text: "zoo:gnmt-4:batch=64" has the name gnmt-4 and the options "batch=64".
struct ModelName {
  bool family = false;
  std::string_view name = {};
  std::string_view options = {};
};
ModelName split_name(std::string_view text);

// "batch=64,layers=4". Throws an Error that names what is no option.
OptionValues parse_options(std::string_view text);

}  // namespace emplace::zoo
