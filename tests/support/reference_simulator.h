// docs/simulator.md a second time: slow, straightforward, sharing no code with src/sim or src/cost
// and reading only the Graph and the Cluster. It checks the product, so where the two disagree the
// page decides. Quadratic in places; meant for graphs of some dozens of ops.
#pragma once

#include <string>
#include <vector>

#include <emplace/problem.h>

#include "base/ids.h"
#include "base/units.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "sim/placement.h"

namespace emplace::reference {

// One transfer, however many destinations it serves.
struct Sending {
  TensorId tensor = 0;
  DeviceId from = 0;
  std::vector<DeviceId> to;  // ascending
  ChannelId channel = kNoChannel;
  Nanoseconds length = 0;  // 0: instant, uses no channel
  Nanoseconds queued = 0;
  Nanoseconds start = 0;
  Nanoseconds finish = 0;
};

struct OpTimes {
  Nanoseconds start = -1;
  Nanoseconds finish = -1;
};

struct ChannelTotals {
  Nanoseconds busy = 0;
  Bytes bytes = 0;
  std::int64_t sendings = 0;  // without instant ones
};

struct Run {
  Nanoseconds step = 0;
  std::vector<OpTimes> ops;
  std::vector<Sending> sendings;
  std::vector<Bytes> peaks;              // by device
  std::vector<Nanoseconds> device_busy;  // by device
  std::vector<ChannelTotals> channels;   // by channel
};

struct Throughput {
  Nanoseconds period_full = 0;            // overlap: full
  Nanoseconds period_none = 0;            // overlap: none
  std::vector<Nanoseconds> device_loads;  // durations alone
  std::vector<Nanoseconds> device_sums;   // with the communication that overlap: none adds
  std::vector<Nanoseconds> channel_loads;
  std::vector<Bytes> memory;
};

// How long a compute op with a measured time, a source or a view lasts. Throws std::logic_error
// when there is no measured time for the device.
Nanoseconds duration(const Graph& graph, const Cluster& cluster, OpId op, DeviceId device);

// latency + ceil(bytes * 10^9 / bandwidth).
Nanoseconds sending_length(const Link& link, Bytes bytes);

// The tensor that a view's output is part of; any other tensor itself.
TensorId root_of(const Graph& graph, TensorId tensor);
// Whether the op writes over the tensor, one of its inputs, as docs/simulator.md's "In place" says.
bool writes_over(const Graph& graph, OpId op, TensorId tensor, InPlace mode);
// Whether what the op writes lasts.
bool whole_step(const Graph& graph, OpId op);
// Rule 4: what is sent when `tensor`'s producer finishes, with lengths but no times yet.
std::vector<Sending> sendings_of(const Graph& graph, const Cluster& cluster,
                                 const Placement& placement, TensorId tensor);

// By op, the lowest op that it must share a device with.
std::vector<OpId> group_leaders(const Graph& graph);

// Why the placement is refused; empty when it is valid.
std::string refusal(const Graph& graph, const Cluster& cluster, const Placement& placement);

// The placement must be valid.
Run simulate(const Graph& graph, const Cluster& cluster, const Placement& placement,
             const Schedule& schedule, InPlace mode = InPlace::kSums);

// By loads alone.
Throughput stream(const Graph& graph, const Cluster& cluster, const Placement& placement);

// A stream with at most `in_flight` steps at a time, simulated.
struct Flow {
  Nanoseconds period = 0;
  Nanoseconds latency = 0;
  std::vector<Bytes> peaks;  // by device
};
Flow flow(const Graph& graph, const Cluster& cluster, const Placement& placement,
          const Schedule& schedule, int in_flight, InPlace mode = InPlace::kSums);

}  // namespace emplace::reference
