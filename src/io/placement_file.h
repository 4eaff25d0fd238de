// emplace.placement/1: a placement with the names of what it was made for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/placement.h"

namespace emplace {

// How the model was read that a placement is of, beside its file: what differs from the defaults.
struct MadeWith {
  std::map<std::string, std::int64_t> dims = {};
  bool training = false;  // a forward model was turned into its training step
  std::string optimizer = {};
  bool colocate_gradients = false;
  std::vector<std::string> recompute = {};
  std::string granularity = {};  // what was kept whole: module, layer
  std::int64_t batch = 0;        // samples of a step, where they were asked for
  std::string precision = {};
  std::string in_place = {};  // other than sums: none, all

  bool operator==(const MadeWith&) const = default;
  bool empty() const { return *this == MadeWith{}; }
};
// The object `made_with` of docs/formats.md.
std::string made_with_json(const MadeWith& made);

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
  MadeWith made_with = {};
};

// What the Error says of a training step's placement where the model is a forward pass.
inline constexpr std::string_view kHintAtTraining =
    "; the placement has ops of a training step, and the model is a forward pass";

// Throws an Error that names the op when the file names an unknown op or device, leaves an op out,
// or breaks the rules of check_placement.
PlacementFile read_placement_json(const std::string& text, const Problem& problem);

// The same by names alone, for those who do not have the model.
struct PlacementNames {
  std::string graph = {};
  std::string cluster = {};
  std::string placer = {};
  std::optional<Nanoseconds> step = std::nullopt;                    // predicted
  std::vector<std::pair<std::string, std::string>> assignment = {};  // op and device
};
PlacementNames read_placement_names(const std::string& text);

std::string write_placement_json(const Problem& problem, const PlacementFile& file);

}  // namespace emplace
