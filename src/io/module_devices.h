// A placement by modules, for runtimes that place modules: each gets a device, or is left to what
// is inside it.
#pragma once

#include <string>
#include <vector>

#include "sim/placement.h"

namespace emplace {

// What a runtime does about a weight that modules on several devices read.
enum class SharedWeights {
  kBrought,  // it has the weight once
  kCopied,   // each device trains a copy of its own
};

struct ModuleDevices {
  struct Entry {
    std::string path;  // a module, or a parameter that a divided module has itself; "": the model
    DeviceId device = 0;
    OpId first = 0;  // its first op of the forward pass
  };
  std::vector<Entry> entries;   // in the order in which the forward pass meets them
  std::vector<DeviceId> of_op;  // where ops of the forward pass then run
  std::vector<OpId> moved;      // those of divided modules that run elsewhere than they were placed
  // Scales and biases that modules on several devices share, three modules or more: equal ones that
  // the exporter made one, not shared in the model.
  std::vector<OpId> made_one;
};

// A module whose ops share a device gets it. One that is divided has nothing but what is inside it,
// and its own ops run where their inputs are, as in PyTorch. Throws an Error that names the module,
// the op and the devices when those are on several, when a weight that several modules share would
// be, or when the graph names no modules. A weight of no module, as a table that an exporter
// computed, may be shared, unless it is trained and copied.
ModuleDevices module_devices(const Problem& problem, const Placement& placement,
                             SharedWeights shared);

// The forward ops that read the weight, directly or through views.
std::vector<OpId> forward_readers(const Graph& graph, OpId weight);

// "cuda:0"'s number: accelerators are counted in the order of the cluster. -1 for a CPU.
int accelerator_number(const Cluster& cluster, DeviceId device);

}  // namespace emplace
