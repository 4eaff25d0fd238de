// Indices into the arrays of a Graph and a Cluster. All count from zero in file order, and that
// order breaks every tie.
#pragma once

#include <cstdint>
#include <limits>

namespace emplace {

using OpId = std::uint32_t;
using TensorId = std::uint32_t;
using GroupId = std::uint32_t;  // a set of ops that must share a device
using DeviceId = std::uint16_t;
using ChannelId = std::uint32_t;

inline constexpr OpId kNoOp = std::numeric_limits<OpId>::max();
inline constexpr DeviceId kNoDevice = std::numeric_limits<DeviceId>::max();
inline constexpr ChannelId kNoChannel = std::numeric_limits<ChannelId>::max();

}  // namespace emplace
