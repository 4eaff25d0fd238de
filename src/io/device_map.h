// A placement by modules, as PyTorch's runtimes take it.
#pragma once

#include <functional>
#include <string>

#include "sim/placement.h"

#include "io/module_devices.h"

namespace emplace {

using ExportNote = std::function<void(const std::string&)>;

// Hugging Face's device_map: modules (and parameters that a divided module has itself) to numbers
// of GPUs, or "cpu". Throws what module_devices throws. `note` is told which ops run elsewhere.
std::string write_device_map(const Problem& problem, const Placement& placement,
                             const ExportNote& note);

// Tells what of the placement runtimes of modules decide themselves: weights that the exporter made
// one, ops of divided modules, the backward pass.
void note_what_moves(const Graph& graph, const ModuleDevices& modules, const ExportNote& note);

}  // namespace emplace
