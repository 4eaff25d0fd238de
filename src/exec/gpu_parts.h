// The parts of a program that are on GPUs, without CUDA's headers: builds without CUDA have none.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cluster/local_kinds.h"

#include "exec/kernel.h"
#include "exec/runtime.h"
#include "exec/step_plan.h"

namespace emplace::exec {

// What they need of the program that they are parts of.
class StepHost {
 public:
  virtual ~StepHost() = default;

  virtual const Graph& graph() const = 0;
  virtual const StepPlan& plan() const = 0;
  // What a tensor is executed in.
  virtual torch::ScalarType type_of(TensorId tensor) const = 0;
  virtual std::int64_t step_number() const = 0;
  // By copy; what ops make is put there, and taken away after the last use.
  virtual std::vector<Tensor>& values() = 0;
  // Launches the op. `clock`: as in OpStep.
  virtual void execute(OpId op, const Clock& clock) = 0;
  virtual bool stopped() const = 0;
  // Until what the op needs of other devices has been sent; no: the step ends.
  virtual bool wait_for(OpId op) = 0;
  virtual void send(TransferId transfer) = 0;
  // Tells ops on other devices that come after it.
  virtual void followed(OpId op) = 0;
  virtual void set_time(OpId op, const Interval& time) = 0;
  // How much more memory was held while it ran, its results included.
  virtual void set_temporary(OpId op, Bytes held) = 0;
  // Runs the body; what it throws ends the step, and is said of the op.
  virtual void guard(OpId op, const std::function<void()>& body) = 0;
};

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
