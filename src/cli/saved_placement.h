// A placement file given on the command line, and in which order its ops are to run.
#pragma once

#include <string>

#include "cli/command.h"
#include "io/placement_file.h"

namespace emplace::cli {

struct SavedPlacementArguments {
  std::string path;
  std::string scheduler;

  // The file as a second positional argument or as --placement.
  void add_to(CLI::App& command, bool required = true);
  PlacementFile load(const Problem& problem) const;
};

}  // namespace emplace::cli
