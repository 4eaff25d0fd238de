// Devices and orders in checkpoints, which are checked before anything is looked up by them. Each
// throws an Error that names the file and the entry.
#pragma once

#include <string>
#include <vector>

#include "learn/train/state.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

void put_devices(StateWriter& state, const std::string& name, const std::vector<DeviceId>& devices);

// One that it may use for every unit, or none at all.
std::vector<DeviceId> devices_of_units(const StateReader& state, const std::string& name,
                                       const UnitGraph& units);
// One that it may use for every op, or none at all.
Placement saved_placement(const StateReader& state, const std::string& name,
                          const Problem& problem);
// A priority for every op, or none at all.
Schedule saved_schedule(const StateReader& state, const std::string& name, const Problem& problem);
// What the best state of an episode is worth; infinite where there is none.
double best_runtime_of(const StateReader& state);
// Some of the cluster's, at least one, ascending.
std::vector<DeviceId> device_set(const StateReader& state, const std::string& name,
                                 DeviceId num_devices);

}  // namespace emplace::learn
