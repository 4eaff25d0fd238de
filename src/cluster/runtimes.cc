#include "cluster/runtimes.h"

#include <algorithm>

namespace emplace {
namespace {

constexpr std::int64_t kMB = 1'000'000;  // per second

// Placeto's public simulator (Addanki et al. 2019), whose constants were measured with TensorFlow
// on the K80s of an EC2 p2.8xlarge.
constexpr std::int64_t kBandwidth = 7'600 * kMB;
constexpr Nanoseconds kHold = 25'000;
constexpr Nanoseconds kGap = 5'700;

// An estimate: what the shortest kernels of that era take. The host's time for an op, which
// `launch_us` of the kinds is, is the gap here.
constexpr double kShortestKernel = 5;

std::vector<Runtime> make_runtimes() {
  return {
      // That simulator itself: one bus out of every device, CPUs included.
      {.name = "placeto",
       .kinds = {"k80"},
       .bandwidth = kBandwidth,
       .host_bandwidth = kBandwidth,
       .hold = kHold,
       .gap = kGap,
       .host_gap = kGap,
       .multicast = true,
       .host_receives = "out"},
      // The same figures without its simplifications: a tensor is sent to each device by itself,
      // and all that enters a host shares one channel.
      {.name = "tf1",
       .kinds = {"k40", "k80", "p100", "p100-12gb", "v100"},
       .bandwidth = kBandwidth,
       .host_bandwidth = kBandwidth,
       .hold = kHold,
       .gap = kGap,
       .launch_us = kShortestKernel},
      // Tofu (Wang et al. 2019) gives 21 GB/s between two GPUs, both ways together, and 10 GB/s to
      // the host. The latency is that of the other presets.
      {.name = "p2",
       .kinds = {"k80"},
       .bandwidth = 10'500 * kMB,
       .host_bandwidth = 10'000 * kMB,
       .latency = 10'000},
  };
}

}  // namespace

std::vector<Runtime> runtimes_for(std::string_view kind) {
  std::vector<Runtime> known = make_runtimes();
  std::erase_if(known, [&](const Runtime& runtime) {
    return std::find(runtime.kinds.begin(), runtime.kinds.end(), kind) == runtime.kinds.end();
  });
  return known;
}

}  // namespace emplace
