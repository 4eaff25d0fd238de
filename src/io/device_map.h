// A placement by modules, as PyTorch's runtimes take it.
#pragma once

#include <functional>
#include <string>

#include "sim/placement.h"

namespace emplace {

using ExportNote = std::function<void(const std::string&)>;

// Hugging Face's device_map: modules (and parameters that a divided module has itself) to numbers
// of GPUs, or "cpu". Throws what module_devices throws. `note` is told which ops run elsewhere.
std::string write_device_map(const Problem& problem, const Placement& placement,
                             const ExportNote& note);

// The stages of torch.distributed.pipelining: where they begin (split_spec), whose rank each is and
// which modules are in it. Throws what module_devices throws, and an Error where a tensor would go
// from a stage to an earlier one.
std::string write_torch_pipeline(const Problem& problem, const Placement& placement,
                                 const ExportNote& note);

}  // namespace emplace
