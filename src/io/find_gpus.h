// The GPUs of this machine that steps can be executed on.
#pragma once

#include <vector>

#include "cluster/local_kinds.h"

namespace emplace {

// By their CUDA numbers. None where nothing that can ask CUDA is there.
std::vector<LocalGpu> find_gpus();

}  // namespace emplace
