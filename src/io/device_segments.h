// Cuts a graph under a placement into segments of one device each that can run one after the other:
// a segment begins when all that it reads is there, and gives away nothing before its end.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace emplace {

struct DeviceSegments {
  std::vector<std::uint32_t> of_node;
  std::vector<DeviceId> device;  // by segment, in an order in which they can run

  std::uint32_t size() const { return static_cast<std::uint32_t>(device.size()); }
};

// `reads`: by node, in topological order, the nodes that it reads from. Every segment is convex (no
// path leaves it and comes back), and no two of a device can be merged unless there are very many.
DeviceSegments device_segments(const std::vector<DeviceId>& device_of_node,
                               const std::vector<std::vector<std::uint32_t>>& reads);

}  // namespace emplace
