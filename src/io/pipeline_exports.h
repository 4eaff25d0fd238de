// A placement that is a pipeline of modules, as the runtimes of pipelines take it. All of these
// throw what module_devices throws, and an Error where a tensor would go to an earlier stage.
#pragma once

#include <string>

#include "io/device_map.h"

namespace emplace {

// torch.distributed.pipelining: where stages begin (split_spec), whose rank each is, and which
// modules are in it.
std::string write_torch_pipeline(const Problem& problem, const Placement& placement,
                                 const ExportNote& note);

// The order in which ranks compute stages of micro-batches, as the CSV that
// torch.distributed.pipelining and torchtitan load: a row a rank, cells such as 0F2 (forward of
// stage 0 for micro-batch 2) and 0B2, empty where it waits. 0 micro-batches: two for each stage.
std::string write_pipeline_schedule(const Problem& problem, const Placement& placement,
                                    int micro_batches, const ExportNote& note);

// The table [parallelism] of a torchtitan job's TOML.
std::string write_torchtitan_config(const Problem& problem, const Placement& placement,
                                    const ExportNote& note);

// DeepSpeed's configuration. Throws an Error where stages have unequal numbers of layers, too.
std::string write_deepspeed_config(const Problem& problem, const Placement& placement,
                                   int micro_batches, const ExportNote& note);

}  // namespace emplace
