// What models, placements and partitions can be written as, one row a format. A new format is a
// writer and a row; `emplace export` and its help read the table.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sim/timeline.h"

#include "io/partition_file.h"
#include "io/placement_file.h"

namespace emplace {

// A model, and what formats need beside it.
struct ExportInput {
  const Graph& graph;

  // Where the graph was read from, for formats that are made of the model's own file.
  std::string model = {};
  std::map<std::string, std::int64_t, std::less<>> dims = {};

  // What follows is read by formats that need a placement, and only by those.
  std::shared_ptr<const Problem> problem = nullptr;  // of that graph
  PlacementFile placed = {};  // placement, schedule and origin; names and predictions are made here
  // The simulated step, which few formats show. Left empty, it is simulated where it is needed.
  std::function<Timeline()> timeline = {};

  int micro_batches = 0;  // that a step is divided into; 0: as the format thinks best

  // And this by formats that need a partition.
  std::shared_ptr<const SavedPartition> partition = nullptr;
  std::shared_ptr<const SavedPartition> as_saved = nullptr;  // before it was put into shapes

  // Told what the target cannot express of it, and what else its user should know.
  std::function<void(const std::string&)> note = {};

  void say(const std::string& text) const {
    if (note) note(text);
  }
};

struct Exporter {
  // Degrees are those of a partition, which is not said tensor by tensor.
  enum class Of { kModel, kPlacement, kPartition, kPlacementOrPartition, kPlacementOrDegrees };

  std::string_view name;
  std::string_view summary;  // in a few words, for help
  Of of;
  std::string (*write)(const ExportInput& input);  // the file's content
  bool in_micro_batches = false;                   // whether it says how many there are
  // Formats of several files fill an empty folder instead, and one of this name is among them.
  void (*fill)(const ExportInput& input, const std::string& folder) = nullptr;
  std::string_view marker = {};

  bool is_folder() const { return fill != nullptr; }
};

// In the order in which people are shown them.
std::span<const Exporter> exporters();

// Throws an Error that lists the known names where there is none of this name.
const Exporter& find_exporter(std::string_view name);

}  // namespace emplace
