#include "sim/placement.h"

#include <algorithm>

#include "base/error.h"

namespace emplace {
namespace {

// Whether the op's own list leaves the device out.
bool forbids(const Problem& problem, OpId op, DeviceId id) {
  const Device& device = problem.cluster().device(id);
  const auto allowed = problem.graph().allowed_devices(op);
  return !allowed.empty() && std::none_of(allowed.begin(), allowed.end(), [&](StringId name) {
    const std::string_view text = problem.graph().strings().get(name);
    return text == device.name || text == device.kind;
  });
}

void check_op(const Problem& problem, const Placement& placement, OpId op) {
  const Graph& graph = problem.graph();
  const Cluster& cluster = problem.cluster();
  const DeviceId device = placement[op];
  if (device >= problem.num_devices()) {
    fail_input("op '{}': is placed on device number {}; the cluster has {}", graph.op_name(op),
               device, problem.num_devices());
  }
  const GroupId group = problem.group_of(op);
  const OpId first = problem.group_ops(group)[0];
  if (placement[first] != device) {
    fail_input("op '{}': is placed on '{}', but must share a device with op '{}', which is on '{}'",
               graph.op_name(op), cluster.device(device).name, graph.op_name(first),
               cluster.device(placement[first]).name);
  }
  if (problem.allowed(group, device)) return;
  if (forbids(problem, op, device)) {
    fail_input("op '{}': is placed on '{}', which its devices do not allow", graph.op_name(op),
               cluster.device(device).name);
  }
  // Another op of the group may be the reason, and is then named instead; else a rule is.
  const auto ops = problem.group_ops(group);
  if (std::any_of(ops.begin(), ops.end(),
                  [&](OpId other) { return forbids(problem, other, device); })) {
    return;
  }
  std::vector<std::string_view> allowed;
  for (const DeviceId other : problem.allowed_devices(group)) {
    allowed.push_back(cluster.device(other).name);
  }
  fail_input("op '{}': is placed on '{}', but pins and what is forbidden leave it only {}",
             graph.op_name(op), cluster.device(device).name, fmt::join(allowed, ", "));
}

}  // namespace

void check_placement(const Problem& problem, const Placement& placement) {
  const Graph& graph = problem.graph();
  const Cluster& cluster = problem.cluster();
  if (placement.size() != problem.num_ops()) {
    fail_input("a placement of {} ops for a graph of {}", placement.size(), problem.num_ops());
  }
  for (OpId op = 0; op < problem.num_ops(); ++op) check_op(problem, placement, op);
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    const OpId producer = graph.producer(tensor);
    for (const OpId consumer : graph.consumers(tensor)) {
      const DeviceId from = placement[producer];
      const DeviceId to = placement[consumer];
      if (from != to && cluster.link(from, to) == nullptr) {
        fail_input("op '{}': needs a tensor of op '{}' sent from '{}' to '{}', which have no link",
                   graph.op_name(consumer), graph.op_name(producer), cluster.device(from).name,
                   cluster.device(to).name);
      }
    }
  }
}

Placement expand_groups(const Problem& problem, const std::vector<DeviceId>& device_of_group) {
  Placement placement(problem.num_ops());
  for (OpId op = 0; op < problem.num_ops(); ++op)
    placement[op] = device_of_group[problem.group_of(op)];
  return placement;
}

}  // namespace emplace
