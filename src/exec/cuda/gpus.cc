// This machine's GPUs, and host memory that they copy from and to.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include "exec/gpu_parts.h"

namespace emplace::exec {

std::vector<LocalGpu> cuda_gpus() {
  std::vector<LocalGpu> gpus;
  const int count = static_cast<int>(c10::cuda::device_count());
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
    LocalGpu gpu{.index = index,
                 .name = properties.name,
                 .memory = static_cast<Bytes>(properties.totalGlobalMem),
                 .peers = {}};
    for (int other = 0; other < count; ++other) {
      int reachable = 0;
      if (other != index && cudaDeviceCanAccessPeer(&reachable, index, other) == cudaSuccess &&
          reachable != 0) {
        gpu.peers.push_back(other);
      }
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  if (cudaHostAlloc(&memory, bytes, cudaHostAllocDefault) == cudaSuccess) return memory;
  cudaGetLastError();  // or whatever this thread launches next would fail with it
  return nullptr;
}

void free_pinned(void* memory) {
  cudaFreeHost(memory);
}

}  // namespace emplace::exec
