// A placement of whole layers, as the flags of runtimes that only know layers.
#pragma once

#include <string>

#include "io/device_map.h"

namespace emplace {

// llama.cpp: --tensor-split where the layers follow the order of the GPUs, else --override-tensor.
// Throws an Error when a layer is divided, or the model is not one row of numbered layers.
std::string write_llama_cpp_flags(const Problem& problem, const Placement& placement,
                                  const ExportNote& note);

// Megatron-LM: --pipeline-model-parallel-size and the layout of uneven stages. Throws the same, and
// an Error when the devices are not stages that follow each other.
std::string write_megatron_flags(const Problem& problem, const Placement& placement,
                                 const ExportNote& note);

}  // namespace emplace
