// What sort of devices this machine has.
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/local_machine.h"

namespace emplace {

// What whoever can ask CUDA says of a GPU.
struct LocalGpu {
  int index = 0;           // as in "cuda:0"
  std::string name;        // "NVIDIA H200"
  Bytes memory = 0;        // what can be allocated
  std::vector<int> peers;  // indices of those whose memory it can write itself
};

// So many cores of the machine: peaks from their frequency and width, and the built-in cpu's share
// of bandwidth. The kind is called "cpu-4cores", unlike any device.
DeviceKind kind_of_cores(const LocalMachine& machine, int cores, Bytes memory);

struct GpuKind {
  DeviceKind kind;
  bool built_in = true;  // otherwise it is assumed, and says so
};
GpuKind kind_of_local_gpu(const LocalGpu& gpu);

}  // namespace emplace
