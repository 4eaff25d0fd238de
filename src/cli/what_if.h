// --batch, --scale and --price: another batch, other hardware, and what it costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "run/batch_search.h"
#include "run/problem_request.h"

namespace emplace::cli {

struct WhatIfArguments {
  bool takes_ranges = false;  // of batches: for commands that look for the largest that fits
  std::string batch;
  std::vector<std::string> scales;
  std::vector<std::string> prices;

  void add_batch(Command command);
  void add_hardware(Command command);
  // Where the batch is a range, it is left for the command to choose.
  void apply(ProblemRequest& request) const;
  // Batches to look for the largest that fits in; nothing where one was given, or none.
  std::optional<BatchRange> range() const;
};

}  // namespace emplace::cli
