// The matrix products below libtorch, for a program that owns its process.
#pragma once

namespace emplace::cli {

// Lets OpenBLAS have kernels for this processor and no threads of its own, and OpenMP none either,
// unless the environment says otherwise: threads are for samples and evaluations. To be called
// first in main, before there are threads: it changes the environment.
void prepare_blas();

}  // namespace emplace::cli
