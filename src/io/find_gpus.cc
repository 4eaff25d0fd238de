#include "io/find_gpus.h"

namespace emplace {

// The one place that knows of GPUs: whatever executes on them is asked here.
std::vector<LocalGpu> find_gpus() {
  return {};
}

}  // namespace emplace
