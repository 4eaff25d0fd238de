// emplace.placement/1: a placement with the names of what it was made for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/placement.h"

namespace emplace {

struct PlacementFile {
  std::string graph;
  std::string cluster;
  std::string placer;
  std::uint64_t seed = 0;
  Placement placement;
  Schedule schedule;

  struct Predicted {
    Nanoseconds step = 0;
    bool fits = false;
    Nanoseconds lower_bound = 0;                       // of the period, where there is one
    std::optional<Nanoseconds> period = std::nullopt;  // of a stream, where that was the objective
    int in_flight = 0;                                 // steps, where the stream was simulated
  };
  std::optional<Predicted> predicted;
};

// Throws an Error that names the op when the file names an unknown op or device, leaves an op out,
// or breaks the rules of check_placement.
PlacementFile read_placement_json(const std::string& text, const Problem& problem);

std::string write_placement_json(const Problem& problem, const PlacementFile& file);

}  // namespace emplace
