// Many placements in one process: those of a folder, or lines of a file or of standard input.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/json_output.h"

namespace emplace::cli {

// Whether the path stands for many placements: a folder, a file of JSON lines (.jsonl), or "-".
bool is_many(const std::string& path);

// Prints the header, then a line for each placement, as soon as it is known.
void simulate_many(const std::string& path, const std::shared_ptr<const Problem>& problem,
                   const JsonHeader& header, const std::string& scheduler, int threads,
                   Session& session);

}  // namespace emplace::cli
