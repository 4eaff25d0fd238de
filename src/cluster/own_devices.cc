#include "cluster/own_devices.h"

#include <map>
#include <set>
#include <utility>

#include "base/error.h"

#include "cluster/runs_on.h"

namespace emplace {
namespace {

const std::string& place_of(const Device& device, int rank) {
  return rank == 0 ? device.runs_on : device.also_runs_on[static_cast<std::size_t>(rank - 1)];
}

void require_places(const Cluster& cluster, int count) {
  for (const Device& device : cluster.spec().devices) {
    const std::size_t places = device.runs_on.empty() ? 0 : 1 + device.also_runs_on.size();
    if (places >= static_cast<std::size_t>(count)) continue;
    fail_input(
        "device '{}': runs_on: places: {}, for {} ranks on this machine that measure steps; "
        "expected one for each, such as [cores 0, cores 1] ('emplace cluster local' writes such a "
        "file), or a machine for each rank",
        device.name, places, count);
  }
}

}  // namespace

OwnDevices devices_of_rank(const std::shared_ptr<const Cluster>& cluster, int index, int count) {
  OwnDevices own{.cluster = cluster};
  if (count <= 1) return own;
  require_places(*cluster, count);
  std::map<int, int> rank_of_core;
  std::map<int, int> rank_of_gpu;
  std::set<int> cores_of_others;
  for (int rank = 0; rank < count; ++rank) {
    for (const Device& device : cluster->spec().devices) {
      const RunsOn where = parse_runs_on(place_of(device, rank));
      if (where.cuda && rank_of_gpu.try_emplace(*where.cuda, rank).first->second != rank) {
        fail_input("device '{}': runs_on: 'cuda:{}' is two ranks'; expected a GPU for each",
                   device.name, *where.cuda);
      }
      for (const int core : where.cores) {
        if (rank != index) cores_of_others.insert(core);
        const int other = rank_of_core.try_emplace(core, rank).first->second;
        if (other == rank || !own.warnings.empty()) continue;
        own.warnings.push_back(
            fmt::format("ranks {} and {} of this machine share core {}: times will mislead", other,
                        rank, core));
      }
    }
  }
  own.cores_of_others.assign(cores_of_others.begin(), cores_of_others.end());
  ClusterSpec spec = cluster->spec();
  for (Device& device : spec.devices) {
    device.runs_on = std::string(place_of(device, index));
    device.also_runs_on.clear();
  }
  own.cluster = std::make_shared<const Cluster>(std::move(spec));
  return own;
}

}  // namespace emplace
