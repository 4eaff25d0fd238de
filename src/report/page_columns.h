// The parts of the page's data that are long columns of numbers.
#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

#include "graph/modules.h"

#include "sim/critical_chain.h"
#include "sim/placement.h"
#include "sim/stream_run.h"
#include "sim/timeline.h"

namespace emplace {

// Devices, channels and, of every ordered pair that has one, its link.
nlohmann::ordered_json cluster_columns(const Cluster& cluster);
// By op: name, type, module, phase, device and what it reads from.
nlohmann::ordered_json op_columns(const Problem& problem, const Placement& placement,
                                  const Modules& modules);
// Starts and lengths by op, and the transfers.
nlohmann::ordered_json step_columns(const Problem& problem, const Timeline& timeline);
// By transfer of the step: the ops that read what it brings.
nlohmann::ordered_json reader_columns(const Problem& problem, const Placement& placement,
                                      const Timeline& timeline);
// By op: the last thing that it waited for, and until when.
nlohmann::ordered_json cause_columns(const Problem& problem, const Placement& placement,
                                     const Timeline& timeline);
nlohmann::ordered_json chain_columns(const CriticalChain& chain);
// By device: what it holds over time, until `last`, its peak by then, and what is largest at it.
nlohmann::ordered_json memory_columns(const Problem& problem, const Placement& placement,
                                      std::span<const Timeline> steps, Nanoseconds last);
// The first steps of a stream: entries (and that of the first step that is not among them),
// finishes, stages in the order of the pipeline, and causes by step.
nlohmann::ordered_json stream_columns(const Problem& problem, const Placement& placement,
                                      const StreamRun& stream);
nlohmann::ordered_json map_columns(const Graph& graph, const Modules& modules);

}  // namespace emplace
