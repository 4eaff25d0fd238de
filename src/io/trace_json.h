// Timelines out, in the Trace Event format that Perfetto and chrome://tracing open.
#pragma once

#include <string>
#include <vector>

#include "sim/placement.h"
#include "sim/timeline.h"

namespace emplace {

// A track for each device and each channel that was used.
std::string write_trace_json(const Problem& problem, const Placement& placement,
                             const Timeline& timeline);
// The same of several steps of a stream, which the events name.
std::string write_trace_json(const Problem& problem, const Placement& placement,
                             const std::vector<Timeline>& steps);
// Two of the same step, one above the other, named so.
struct NamedTimeline {
  std::string name;
  const Timeline& timeline;
};
std::string write_trace_json(const Problem& problem, const Placement& placement,
                             const NamedTimeline& first, const NamedTimeline& second);

}  // namespace emplace
