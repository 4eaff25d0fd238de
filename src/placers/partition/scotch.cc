// Scotch: static mapping of the groups on all devices, CPUs included. Pellegrini, Roman: "Scotch: A
// software package for static mapping by dual recursive bipartitioning of process and architecture
// graphs", HPCN Europe 1996. The baseline of Mirhoseini et al. 2017; knows times and bytes, neither
// memory nor the order of ops.
#include <algorithm>

#include "placer/linked_devices.h"
#include "placer/placer.h"

#include "placers/common/coarse_graph.h"
#include "placers/common/scotch_map.h"

namespace emplace {
namespace {

class Scotch final : public Placer {
 public:
  struct Options {
    double imbalance = 0.05;
  };

  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.real("imbalance", &Options::imbalance, 0.001, 10,
                                        "How much of a device's share it may have too much.");
  }

  explicit Scotch(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

// What a byte costs between two devices, the slower direction counting. Latency has no place in a
// cost per byte and is left out.
std::vector<double> byte_costs(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  std::vector<double> costs;
  for (const DeviceId a : devices) {
    for (const DeviceId b : devices) {
      if (a == b) {
        costs.push_back(0);
        continue;
      }
      const std::int64_t slower =
          std::min(cluster.link(a, b)->bandwidth, cluster.link(b, a)->bandwidth);
      costs.push_back(1 / static_cast<double>(slower));
    }
  }
  return costs;
}

PlaceResult Scotch::place(PlaceContext& context, const Budget&, Rng rng) {
  const Problem& problem = context.problem();
  const CoarseGraph graph = build_coarse_graph(problem);
  const std::vector<DeviceId> linked = mutually_linked_devices(problem);
  const std::vector<DeviceId> devices = partition_devices(problem, graph, linked);
  const ScotchTarget target{.shares = speed_shares(problem, devices),
                            .distances = byte_costs(problem.cluster(), devices)};
  const auto parts = scotch_map(graph, target, options_.imbalance, rng);
  return place_parts(problem, context.evaluator(), graph, parts, devices, linked);
}

}  // namespace

EMPLACE_PLACER(scotch, Scotch, .family = "partition",
               .summary = "Static mapping on all devices by their speeds and links.",
               .reference = "Pellegrini, Roman, HPCN Europe 1996", .randomized = true)

}  // namespace emplace
