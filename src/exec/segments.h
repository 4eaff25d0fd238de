// Which of a GPU's ops are launched together, as one CUDA graph: a new one begins where an op needs
// a tensor of another device that is not simulated to be there when the graph is launched.
#pragma once

#include <vector>

#include "exec/runtime.h"
#include "exec/step_plan.h"

namespace emplace::exec {

struct Segment {
  std::vector<OpId> ops;             // in order, views included
  std::vector<OpId> waits;           // those that need something of another device
  std::vector<TransferId> arrivals;  // what is first needed here
  std::vector<TransferId> sends;     // what is made here for others
  std::vector<OpId> followed;        // those that ops on other devices come after
};

// Ops of a GPU are executed in the order in which they are launched: from now on, those of the
// device only wait for what comes from other devices.
void wait_for_others_alone(const Graph& graph, DeviceId device, StepPlan& plan);

// Of a device whose ops do. The device's ops in the order that is asked for, else in the graph's.
std::vector<Segment> cut_segments(const Graph& graph, const StepPlan& plan, DeviceId device,
                                  const ProgramOrder& order);

}  // namespace emplace::exec
