// The library below libtorch's matrix products on the CPU.
#pragma once

namespace emplace::learn {

// One thread for every tensor operation: threads are for shards of samples and for evaluations, and
// sums must not depend on how many there are. And kernels for the processor that this is. Before
// the first operation; later calls do nothing.
void prepare_tensor_operations();

}  // namespace emplace::learn
