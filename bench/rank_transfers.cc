// What a tensor takes from one rank's device to another's, as a step sends it:
//
//   mpirun --oversubscribe --bind-to none -n 2 build/bench/rank_transfers                 (shared
//   memory) mpirun --oversubscribe --bind-to none --mca btl tcp,self -n 2
//   build/bench/rank_transfers build/bench/rank_transfers                                     (one
//   process, for comparison)
//
// The medians of steps of one op on each of two devices. As root, mpirun wants --allow-run-as-root.
#include <cstdlib>
#include <memory>

#include <fmt/core.h>

#include "dist/mpi.h"
#include "run/measurement.h"
#include "run/rank_peers.h"

namespace {

using namespace emplace;

std::shared_ptr<const Cluster> two_devices() {
  ClusterSpec spec;
  spec.name = "two";
  for (const char* core : {"0", "1"}) {
    Device device;
    device.name = std::string("cpu") + core;
    device.kind = "cpu";
    device.memory = kUnlimited;
    device.runs_on = std::string("cores ") + core;
    spec.devices.push_back(device);
  }
  LinkRule rule;
  rule.bandwidth = 1'000'000'000;
  rule.channel = "out";
  spec.links.push_back(rule);
  return std::make_shared<const Cluster>(spec);
}

void measure(exec::Peers* peers) {
  exec::RuntimeOptions options;
  options.peers = peers;
  Laboratory laboratory(two_devices(), options);
  const bool first = peers == nullptr || peers->rank() == 0;
  if (first) fmt::print("{:>10}  {:>12}  {:>10}\n", "bytes", "microseconds", "GB/s");
  for (Bytes bytes = 4096; bytes <= Bytes{16} << 20; bytes *= 8) {
    const Nanoseconds time = laboratory.send(0, 1, bytes);
    if (!first) continue;
    fmt::print("{:>10}  {:>12.1f}  {:>10.2f}\n", bytes, static_cast<double>(time) / 1000,
               static_cast<double>(bytes) / static_cast<double>(time));
  }
}

}  // namespace

int main() {
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) {
    measure(nullptr);
    return 0;
  }
  RankPeers peers(dist::join_mpi("the benchmark"), 10);
  measure(&peers);
  peers.close();
  std::fflush(nullptr);
  std::_Exit(0);
}
