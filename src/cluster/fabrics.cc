#include "cluster/fabrics.h"

#include <algorithm>
#include <array>

namespace emplace {
namespace {

constexpr std::int64_t kGB = 1'000'000'000;  // per second

// Of the 15.75, 31.5 and 63 GB/s that sixteen lanes of PCIe 3, 4 and 5 carry.
constexpr std::int64_t kPcie3 = 12 * kGB;
constexpr std::int64_t kPcie4 = 24 * kGB;
constexpr std::int64_t kPcie5 = 50 * kGB;

constexpr std::array<std::string_view, 9> kPcie3Kinds{
    "k40", "k80", "p100", "p100-12gb", "v100", "v100-32gb", "v100-pcie", "t4", "tpu-v4"};
constexpr std::array<std::string_view, 8> kPcie5Kinds{"h100",  "h100-pcie", "h200",    "b200",
                                                      "gb200", "mi300x",    "rtx5080", "rtx5090"};

// Published bandwidths, one way.
constexpr std::array kFabrics{
    Fabric{"p100", "nvlink", Topology::kCubeMesh, 20 * kGB, 8},
    Fabric{"v100", "nvlink", Topology::kCubeMesh, 25 * kGB, 8},
    Fabric{"v100", "nvlink", Topology::kSwitch, 150 * kGB, 16},
    Fabric{"v100-32gb", "nvlink", Topology::kCubeMesh, 25 * kGB, 8},
    Fabric{"v100-32gb", "nvlink", Topology::kSwitch, 150 * kGB, 16},
    Fabric{"rtx3090", "nvlink", Topology::kAllPairs, 56'250'000'000, 2},
    Fabric{"a6000", "nvlink", Topology::kAllPairs, 56'250'000'000, 2},
    Fabric{"a100", "nvlink", Topology::kSwitch, 300 * kGB, 16},
    Fabric{"a100-40gb", "nvlink", Topology::kSwitch, 300 * kGB, 16},
    Fabric{"h100", "nvlink", Topology::kSwitch, 450 * kGB, 8},
    Fabric{"h100-pcie", "nvlink", Topology::kAllPairs, 300 * kGB, 2},
    Fabric{"h200", "nvlink", Topology::kSwitch, 450 * kGB, 8},
    Fabric{"b200", "nvlink", Topology::kSwitch, 900 * kGB, 8},
    Fabric{"gb200", "nvlink", Topology::kSwitch, 900 * kGB, 72},
    Fabric{"mi300x", "xgmi", Topology::kAllPairs, 64 * kGB, 8},
    // A copy takes one of a chip's links: four of v5e's, six of the others'.
    Fabric{"tpu-v4", "ici", Topology::kSwitch, 50 * kGB, 8},
    Fabric{"tpu-v5e", "ici", Topology::kSwitch, 50 * kGB, 8},
    Fabric{"tpu-v5p", "ici", Topology::kSwitch, 100 * kGB, 8},
};

constexpr std::array kCubeMeshEdges{
    MeshEdge{0, 1, 1}, MeshEdge{0, 2, 1}, MeshEdge{0, 3, 2}, MeshEdge{0, 4, 2},
    MeshEdge{1, 2, 2}, MeshEdge{1, 3, 1}, MeshEdge{1, 5, 2}, MeshEdge{2, 3, 2},
    MeshEdge{2, 6, 1}, MeshEdge{3, 7, 1}, MeshEdge{4, 5, 1}, MeshEdge{4, 6, 1},
    MeshEdge{4, 7, 2}, MeshEdge{5, 6, 2}, MeshEdge{5, 7, 1}, MeshEdge{6, 7, 2},
};

}  // namespace

std::int64_t pcie_bandwidth(std::string_view kind) {
  const auto is_one_of = [&](const auto& kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  return is_one_of(kPcie3Kinds) ? kPcie3 : is_one_of(kPcie5Kinds) ? kPcie5 : kPcie4;
}

std::span<const Fabric> fabrics() {
  return kFabrics;
}

std::span<const MeshEdge> cube_mesh_edges() {
  return kCubeMeshEdges;
}

}  // namespace emplace
