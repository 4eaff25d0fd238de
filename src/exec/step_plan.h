// What a step under a placement consists of, worked out once: where every tensor has copies, who
// waits for what, what is sent.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/ids.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "sim/placement.h"

#include "exec/runtime.h"

namespace emplace::exec {

using CopyId = std::uint32_t;
using TransferId = std::uint32_t;

// A tensor on one device.
struct TensorCopy {
  TensorId tensor = 0;
  DeviceId device = 0;
  bool lasting = false;                // of a source: there before and after the step
  std::int32_t uses = 0;               // readers and sends; after the last its memory is free
  std::vector<OpId> readers = {};      // ops on the device that wait for it
  std::vector<TransferId> sends = {};  // in the order of their destinations
};

struct PlannedOp {
  DeviceId device = 0;
  std::int32_t missing = 0;      // what it waits for: arriving tensors, ops that must come first
  std::vector<CopyId> inputs;    // as the graph lists them
  std::vector<CopyId> releases;  // the same, each once, without lasting ones
  std::vector<CopyId> outputs;
  std::vector<OpId> followers;  // that wait for it without a tensor
  OpId keeper = kNoOp;          // a gradient's forward op, where both are on one device
  std::int32_t keeps_for = 0;   // of a forward op: so many gradients
};

struct PlannedTransfer {
  CopyId from = 0;
  CopyId to = 0;
  ChannelId channel = 0;
};

struct StepPlan {
  std::vector<PlannedOp> ops;
  std::vector<TensorCopy> copies;
  std::vector<PlannedTransfer> transfers;
  std::vector<std::vector<OpId>> first_ops;          // by device: those that wait for nothing
  std::vector<std::vector<TransferId>> first_sends;  // by device: of sources
  std::vector<std::int32_t> num_timed;               // by device: ops that take time
  std::vector<CopyId> losses;
};

// `keeper_of(op)`: the forward op that a gradient op has by-products from, or kNoOp. The placement
// is valid. Throws an Error where a tensor is sent over a pair of devices without a link.
StepPlan plan_step(const Graph& graph, const Cluster& cluster, const Placement& placement,
                   const std::function<OpId(OpId)>& keeper_of);

}  // namespace emplace::exec
