// What joins the devices of a preset: PCIe generations, and the direct links of each kind, with
// their published bandwidths. docs/clusters.md repeats the figures for people, with sources.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/units.h"

namespace emplace {

inline constexpr Nanoseconds kPcieLatency = 10'000;
inline constexpr Nanoseconds kDirectLatency = 5'000;  // NVLink, xGMI, ICI
// Two UPI links of 20.8 GB/s each way.
inline constexpr std::int64_t kSocketBandwidth = 40'000'000'000;
inline constexpr Nanoseconds kSocketLatency = 1'000;
inline constexpr Nanoseconds kNetworkLatency = 20'000;  // from one machine's host to another's

// What a copy over the kind's PCIe lanes reaches, in bytes per second.
std::int64_t pcie_bandwidth(std::string_view kind);

enum class Topology {
  kCubeMesh,  // DGX-1: direct links between some pairs, PCIe between the others
  kAllPairs,  // a direct link between every two devices
  kSwitch,    // every device has one port, which carries one transfer out at a time
};

struct Fabric {
  std::string_view kind;
  std::string_view name;
  Topology topology;
  std::int64_t bandwidth;  // one way; kCubeMesh: of one link
  std::size_t max_devices;
};

// Where a kind has two rows of one name, the first that has room is meant.
std::span<const Fabric> fabrics();

// The direct connections of a DGX-1. With P100s, which have four links each, every one is single;
// with V100s, which have six, some are double.
struct MeshEdge {
  int a;
  int b;
  int v100_links;
};
std::span<const MeshEdge> cube_mesh_edges();

}  // namespace emplace
