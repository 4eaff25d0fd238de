// What every JSON object that the program prints begins with (docs/formats.md).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <emplace/search.h>

#include "cost/problem.h"

#include "sim/objective.h"

#include "io/placement_file.h"

namespace emplace::cli {

struct JsonHeader {
  std::string format;                // "emplace.answer/1"
  std::string model = {};            // as it was asked for; empty: there is none
  MadeWith made_with = {};           // how it was read
  const Problem* problem = nullptr;  // whose graph and cluster are named
  std::optional<Objective> objective = std::nullopt;
  const Budget* budget = nullptr;
  int ranks = 1;  // that it began with, and how many of them were lost
  int lost_ranks = 0;
  // The step if computing is so many times as slow while a device sends or receives.
  struct SlowOverlap {
    double factor = 1;
    Nanoseconds step = 0;
    std::optional<Nanoseconds> at_full_speed = std::nullopt;  // where all other steps are slow ones
  };
  std::optional<SlowOverlap> slow_overlap = std::nullopt;
};

// The object with the header before its fields, as it is printed.
std::string with_header(const JsonHeader& header, const std::string& object);
// The header alone, as one line.
std::string header_line(const JsonHeader& header);
// The same fields as columns of a table, without the format.
std::vector<std::pair<std::string, std::string>> header_columns(const JsonHeader& header);

}  // namespace emplace::cli
