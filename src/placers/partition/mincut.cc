// MinCut: Scotch's partition of the groups over the accelerators, the CPUs left out and the links
// taken as equal. The second baseline of Mirhoseini et al.: "Device placement optimization with
// reinforcement learning", ICML 2017.
#include <algorithm>

#include "placer/linked_devices.h"
#include "placer/placer.h"

#include "placers/common/coarse_graph.h"
#include "placers/common/scotch_map.h"

namespace emplace {
namespace {

class MinCut final : public Placer {
 public:
  struct Options {
    double imbalance = 0.05;
  };

  static OptionSchema<Options> schema() {
    return OptionSchema<Options>{}.real("imbalance", &Options::imbalance, 0.001, 10,
                                        "How much of a device's share it may have too much.");
  }

  explicit MinCut(const Options& options) : options_(options) {}

  PlaceResult place(PlaceContext& context, const Budget& budget, Rng rng) override;

 private:
  Options options_;
};

// All of them where there is nothing but CPUs.
std::vector<DeviceId> without_cpus(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  std::vector<DeviceId> result;
  for (const DeviceId device : devices) {
    if (!cluster.is_cpu(device)) result.push_back(device);
  }
  return result.empty() ? devices : result;
}

PlaceResult MinCut::place(PlaceContext& context, const Budget&, Rng rng) {
  const Problem& problem = context.problem();
  const CoarseGraph graph = build_coarse_graph(problem);
  const std::vector<DeviceId> linked = mutually_linked_devices(problem);
  const std::vector<DeviceId> devices =
      partition_devices(problem, graph, without_cpus(problem.cluster(), linked));
  const ScotchTarget target{.shares = speed_shares(problem, devices), .distances = {}};
  const auto parts = scotch_map(graph, target, options_.imbalance, rng);
  return place_parts(problem, context.evaluator(), graph, parts, devices, linked);
}

}  // namespace

EMPLACE_PLACER(
    mincut, MinCut, .family = "partition",
    .summary = "Scotch over accelerators alone, links taken as equal; as `scotch` where both hold.",
    .reference = "Mirhoseini et al., ICML 2017", .randomized = true)

}  // namespace emplace
