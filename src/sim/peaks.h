// Peaks of memory from the events that the engine noted.
#pragma once

#include "sim/program.h"
#include "sim/workspace.h"

namespace emplace {

// Fills workspace.peaks. `general`: whether memory may be taken while an instant is followed up, so
// that a device's sum counts only at the end of each instant; otherwise everything is released
// before anything is taken, and the largest sum is the same without looking at instants.
void find_peaks(const SimProgram& program, const Placement& placement,
                Simulator::Workspace& workspace, bool general);

}  // namespace emplace
