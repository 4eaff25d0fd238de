// One placement, told to people and to programs.
#pragma once

#include <string>

#include "placer/run.h"

#include "io/placement_file.h"
#include "run/assessment.h"

namespace emplace {

struct Explanation;

// The object of docs/formats.md; `run` adds how it was found.
std::string to_json(const Assessment& assessment, const RunResult* run = nullptr,
                    const Explanation* explanation = nullptr);
// What it says where it is proven that nothing fits; `advice` is what would help, as lines.
std::string why_nothing_fits_json(const std::string& reason, const std::string& advice = {});

// How near a placement that fits is to the best possible: "within 4 % of the best possible
// placement: none that fits beats 20.0 ms (the reason)".
std::string describe_gap(const Assessment& assessment);

// Step time, what bounds it, devices and channels.
std::string to_text(const Assessment& assessment);

// What is being worked on, and how its op times are known.
std::string describe_problem(const Problem& problem);

// emplace.placement/1, and the timeline for Perfetto.
std::string placement_json(const Assessment& assessment, const RunResult& run,
                           const MadeWith& made_with = {});
std::string trace_json(const Assessment& assessment);

}  // namespace emplace
