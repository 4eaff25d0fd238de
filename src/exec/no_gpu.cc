// exec/gpu_parts.h in builds without CUDA.
#include "base/error.h"

#include "exec/gpu_parts.h"

namespace emplace::exec {

std::unique_ptr<GpuParts> make_gpu_parts(StepHost&, const std::vector<int>&,
                                         const ProgramOptions&) {
  fail(ErrorKind::kUnsupported, "this build has no CUDA, so nothing can be executed on a GPU");
}

std::vector<LocalGpu> cuda_gpus() {
  return {};
}

void* allocate_pinned(std::size_t) {
  return nullptr;
}

void free_pinned(void*) {}

}  // namespace emplace::exec
