// A cluster's devices as workers: who is near whom, and who can do how much.
#pragma once

#include <vector>

#include "cost/problem.h"

#include "tensor/workers.h"

namespace emplace {

struct WorkerDevices {
  Workers workers;
  std::vector<DeviceId> devices;  // by worker
};

// The `count` fastest devices of the cluster that are no CPUs (of all, if all are), 0: all of
// those. Of devices that are equally fast, those are taken that the fastest links join. Where the
// links have levels (machines of several devices), the first levels of the tree divide between the
// groups with the slowest links among them. Devices on which the problem's ops last unequally long
// share the work accordingly, but none has more of it than its memory holds of the step. Throws an
// Error when there are fewer devices.
WorkerDevices workers_on(const Problem& problem, int count = 0);

// How many of the first levels have the slowest links, where the last has faster ones: those
// between machines.
std::size_t levels_between_machines(const Cluster& cluster, const WorkerDevices& on);

// How many of the first levels have slower links than the last, within machines as well.
std::size_t levels_of_slower_links(const Cluster& cluster, const WorkerDevices& on);

}  // namespace emplace
