// What is said to an external placer and what it says, as JSON lines (docs/external.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <emplace/search.h>

#include "placer/context.h"

namespace emplace {

// The first line: everything that there is to know of the problem.
std::string problem_line(const PlaceContext& context, const Budget& budget, std::uint64_t seed);

// Placements are devices by group.
struct ExternalRequest {
  enum class Kind { kEvaluate, kPlace } kind = Kind::kEvaluate;
  bool many = false;                               // whether a list of placements was given
  std::vector<std::vector<std::int64_t>> devices;  // kPlace: none, or one
  Schedule schedule = {};                          // for all of them
};

// Throws an Error that says what was expected.
ExternalRequest read_request(std::string_view line, const Problem& problem);
// Throws an Error when they are too many or too few, none of the devices, or check_placement's.
Placement read_devices(const std::vector<std::int64_t>& devices, const Problem& problem);

struct ExternalValue {
  std::optional<std::string> error;  // why it is no placement; else
  Evaluation value = {};
  std::vector<Bytes> peaks = {};
};
// One object, or a list of them; `stop` is why some have no value, and empty where all have.
std::string values_line(const std::vector<ExternalValue>& values, bool many,
                        const Objective& objective, std::string_view stop);

}  // namespace emplace
