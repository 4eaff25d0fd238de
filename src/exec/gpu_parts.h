// The parts of a program that are on GPUs, without CUDA's headers: builds without CUDA have none.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cluster/local_kinds.h"

#include "exec/step_host.h"

namespace emplace::exec {

class GpuParts {
 public:
  virtual ~GpuParts() = default;

  virtual bool has(DeviceId device) const = 0;
  // Where the device's sources are to be, and its kernels run.
  virtual torch::Device torch_device(DeviceId device) const = 0;
  // Once the sources are there.
  virtual void prepare() = 0;
  // Executes the device's ops, on its thread.
  virtual void run(DeviceId device) = 0;
  // All devices have executed their ops, and whatever they sent is there.
  virtual void end_step() = 0;
  // Until a tensor that is to be sent has been computed, where a GPU computes it.
  virtual void wait_for_result(TransferId transfer) = 0;
  // Sends a tensor from or to a GPU, on the channel's thread. Calls `arrived` when its readers may
  // go on, and returns when it is there.
  virtual void carry(TransferId transfer, const std::function<void()>& arrived) = 0;
  virtual MemoryRecord memory(DeviceId device) const = 0;
};

// `cuda_of_device`: by device of the cluster; -1: no GPU. Throws an Error in builds without CUDA.
std::unique_ptr<GpuParts> make_gpu_parts(StepHost& host, const std::vector<int>& cuda_of_device,
                                         const ProgramOptions& options);

std::vector<LocalGpu> cuda_gpus();
// Blocks of host memory that GPUs copy from and to without staging; nullptr: cannot be had.
void* allocate_pinned(std::size_t bytes);
void free_pinned(void* memory);

}  // namespace emplace::exec
