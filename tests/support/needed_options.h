// Options without which a placer does not run.
#pragma once

#include <string>

#include <emplace/search.h>

namespace emplace {

// How tests start the external placer that climbs.
inline std::string climbing_command() {
  return "/usr/bin/python3 -S -E '" EMPLACE_SOURCE_DIR "/tests/data/external/climb.py'";
}

inline OptionValues needed_options(const MethodInfo& info) {
  if (info.family == "external") return {{"command", climbing_command()}};
  return {};
}

}  // namespace emplace
