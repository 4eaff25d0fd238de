// What models and placements can be written as, one row a format. A new format is a writer and a
// row; `emplace export` and its help read the table.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sim/timeline.h"

#include "io/placement_file.h"

namespace emplace {

// A model, and for formats that need one its placement.
struct ExportInput {
  const Graph& graph;

  // What follows is read by formats that need a placement, and only by those.
  std::shared_ptr<const Problem> problem = nullptr;  // of that graph
  PlacementFile placed = {};  // placement, schedule and origin; names and predictions are made here
  // The simulated step, which few formats show. Left empty, it is simulated where it is needed.
  std::function<Timeline()> timeline = {};
};

struct Exporter {
  std::string_view name;
  std::string_view summary;  // in a few words, for help
  bool needs_placement;
  std::string (*write)(const ExportInput& input);  // the file's content
};

// In the order in which people are shown them.
std::span<const Exporter> exporters();

// Throws an Error that lists the known names where there is none of this name.
const Exporter& find_exporter(std::string_view name);

}  // namespace emplace
