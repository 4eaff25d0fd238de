// Peaks of memory from the events that the engine noted.
#pragma once

#include "sim/program.h"
#include "sim/workspace.h"

namespace emplace {

// Fills workspace.peaks. `instants`: whether memory may be taken while an instant is followed up,
// so that a device's sum counts only at the end of each instant; otherwise everything is released
// before anything is taken, and the largest sum is the same without looking at instants.
void find_peaks(const SimProgram& program, const Placement& placement,
                Simulator::Workspace& workspace, bool instants);

// After a run of any kind: whether all devices have room for all that they ever take, even if none
// of it were released. Then no peaks are needed to know that the placement fits.
bool fits_without_release(const SimProgram& program, const Placement& placement,
                          Simulator::Workspace& workspace);

}  // namespace emplace
