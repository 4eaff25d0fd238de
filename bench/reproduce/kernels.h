// Which kernels compute what networks say. They add in different orders, and a search that begins
// with another last digit ends elsewhere: rows of different processors are compared only where
// these are the same.
#pragma once

#include <string>

namespace emplace::bench {

// Asks OpenBLAS and libtorch for the kernels of any x86-64 server of ten years, unless the
// environment says otherwise or the processor has none of them. To be called first in main, before
// cli::prepare_blas. Returns what is computed with: "Haswell/avx2".
std::string pin_kernels();

}  // namespace emplace::bench
