#include "cli/saved_placement.h"

#include <fmt/core.h>

#include "base/error.h"

#include "placer/scheduler.h"

#include "io/file.h"

namespace emplace::cli {

void SavedPlacementArguments::add_to(CLI::App& command, bool required) {
  command.add_option("placement,--placement", path, "Placement file")
      ->required(required)
      ->type_name("PLACEMENT");
  command
      .add_option("--scheduler,--schedule", scheduler,
                  "Order of ready ops: given (the file's priorities), fifo, pct, msr; default: "
                  "given where the "
                  "file has priorities, else fifo")
      ->type_name("KEY");
}

PlacementFile SavedPlacementArguments::load(const Problem& problem) const {
  const std::string content = read_file(path);
  PlacementFile file = with_context(path, [&] { return read_placement_json(content, problem); });
  if (!file.graph.empty() && file.graph != problem.graph().name()) {
    fmt::print(stderr, "warning: {} was made for graph '{}', not '{}'\n", path, file.graph,
               problem.graph().name());
  }
  if (scheduler == "given") {
    if (file.schedule.fifo()) file.schedule.priorities.assign(problem.num_ops(), 0);
  } else if (!scheduler.empty()) {
    file.schedule = with_context("--scheduler (besides given)",
                                 [&] { return make_schedule(problem, file.placement, scheduler); });
  }
  return file;
}

}  // namespace emplace::cli
