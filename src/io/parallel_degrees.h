// Which of the usual ways to train on many devices a partition is, and that as the settings of
// programs that know no others.
#pragma once

#include <string>

#include "graph/graph.h"

#include "io/device_map.h"
#include "io/partition_file.h"

namespace emplace {

// All throw an Error that says what was expected where the partition is none of these: examples
// divided, with everything everywhere, the optimizer's state in parts (ZeRO's stage 1), gradients
// too (2), or weights too (3); linear layers divided by columns and then by rows; or, level by
// level, both.

// Of the partition as it was saved, with what it tells apart inside of the model's tensors.

// Flags of Megatron-LM.
std::string write_megatron_degrees(const Graph& graph, const SavedPartition& partition,
                                   const ExportNote& note);
// The tables [parallelism] and [training] of a torchtitan job's TOML.
std::string write_torchtitan_degrees(const Graph& graph, const SavedPartition& partition,
                                     const ExportNote& note);
// DeepSpeed's configuration; 0 micro-batches: one.
std::string write_deepspeed_degrees(const Graph& graph, const SavedPartition& partition,
                                    int micro_batches, const ExportNote& note);

}  // namespace emplace
