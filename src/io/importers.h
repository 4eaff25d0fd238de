// Placements that other tools made, one row a format: where they say the modules or ops of a model
// run. What they leave open follows what they say.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "sim/placement.h"

namespace emplace {

struct ImportInput {
  const Problem& problem;
  std::string content;  // of the file
  // Symbolic dimensions, for a file that is a model itself.
  std::map<std::string, std::int64_t, std::less<>> dims = {};
  std::function<void(const std::string&)> note = {};
};

struct Importer {
  std::string_view name;
  std::string_view summary;  // in a few words, for help
  // A valid placement. Throws an Error that names the op or module and what was expected.
  Placement (*read)(const ImportInput& input);
};

std::span<const Importer> importers();

// Throws an Error that lists the known names where there is none of this name.
const Importer& find_importer(std::string_view name);

}  // namespace emplace
