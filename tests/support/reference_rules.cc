// docs/simulator.md, "What must be on one device": which placements are refused.
#include <algorithm>

#include "support/reference_simulator.h"

namespace emplace::reference {
namespace {

bool may_use(const Graph& graph, OpId op, const Device& device) {
  if (graph.allowed_devices(op).empty()) return true;
  for (const StringId allowed : graph.allowed_devices(op)) {
    const std::string_view name = graph.strings().get(allowed);
    if (name == device.name || name == device.kind) return true;
  }
  return false;
}

}  // namespace

std::vector<OpId> group_leaders(const Graph& graph) {
  std::vector<OpId> leader(graph.num_ops());
  for (OpId op = 0; op < graph.num_ops(); ++op) leader[op] = op;
  const auto join = [&](OpId a, OpId b) {
    const OpId low = std::min(leader[a], leader[b]);
    const OpId high = std::max(leader[a], leader[b]);
    std::replace(leader.begin(), leader.end(), high, low);
  };
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (graph.is_view(op)) join(op, graph.producer(graph.inputs(op)[0]));
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      if (graph.phase(op) == Phase::kUpdate && graph.role(producer) == OpRole::kParameter) {
        join(op, producer);
      }
    }
    for (OpId other = 0; other < op; ++other) {
      if (!graph.colocate(op).empty() && graph.colocate(op) == graph.colocate(other)) {
        join(op, other);
      }
    }
  }
  return leader;
}

std::string refusal(const Graph& graph, const Cluster& cluster, const Placement& placement) {
  if (placement.size() != graph.num_ops()) return "does not give a device to every op";
  const std::vector<OpId> leaders = group_leaders(graph);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    const std::string what = "op '" + std::string(graph.op_name(op)) + "' ";
    if (placement[op] >= cluster.num_devices()) return what + "is on an unknown device";
    if (!may_use(graph, op, cluster.device(placement[op]))) return what + "may not be there";
    if (placement[op] != placement[leaders[op]]) return what + "is not with its group";
    for (const TensorId tensor : graph.inputs(op)) {
      const DeviceId from = placement[graph.producer(tensor)];
      if (from != placement[op] && cluster.link(from, placement[op]) == nullptr) {
        return what + "has an input that no link can bring";
      }
    }
  }
  return "";
}

}  // namespace emplace::reference
