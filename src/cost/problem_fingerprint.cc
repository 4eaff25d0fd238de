#include "cost/problem_fingerprint.h"

#include <span>

namespace emplace {
namespace {

void add_number(Fingerprint& fingerprint, std::int64_t number) {
  fingerprint.add(static_cast<std::uint64_t>(number));
}

template <class Id>
void add_list(Fingerprint& fingerprint, std::span<const Id> list) {
  fingerprint.add(list.size());
  for (const Id id : list) fingerprint.add(id);
}

void add_ops(Fingerprint& fingerprint, const Problem& problem) {
  const Graph& graph = problem.graph();
  fingerprint.add(problem.num_ops());
  for (OpId op = 0; op < problem.num_ops(); ++op) {
    add_list(fingerprint, graph.inputs(op));
    add_list(fingerprint, graph.outputs(op));
    add_list(fingerprint, graph.after(op));
    fingerprint.add(graph.type(op));
    fingerprint.add(static_cast<std::uint64_t>(graph.role(op)));
    fingerprint.add(static_cast<std::uint64_t>(graph.phase(op)));
    fingerprint.add(graph.is_view(op) ? 1 : 0);
    add_number(fingerprint, graph.temp_bytes(op));
    add_number(fingerprint, graph.persistent_bytes(op));
    add_number(fingerprint, problem.resident_bytes(op));
    fingerprint.add(problem.overwritten(op));
    fingerprint.add(problem.group_of(op));
  }
  fingerprint.add(graph.num_tensors());
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    add_number(fingerprint, graph.bytes(tensor));
    add_number(fingerprint, graph.memory_bytes(tensor));
  }
  fingerprint.add(problem.num_groups());
  for (GroupId group = 0; group < problem.num_groups(); ++group) {
    add_list(fingerprint, problem.allowed_devices(group));
  }
}

void add_link(Fingerprint& fingerprint, const Link* link) {
  fingerprint.add(link != nullptr ? 1 : 0);
  if (link == nullptr) return;
  fingerprint.add(link->channel);
  add_number(fingerprint, link->bandwidth);
  add_number(fingerprint, link->latency);
  add_number(fingerprint, link->hold);
  fingerprint.add(link->multicast ? 1 : 0);
  fingerprint.add(link->unlimited ? 1 : 0);
}

void add_cluster(Fingerprint& fingerprint, const Cluster& cluster) {
  fingerprint.add(cluster.num_devices());
  for (DeviceId device = 0; device < cluster.num_devices(); ++device) {
    add_number(fingerprint, cluster.device(device).memory);
    add_number(fingerprint, cluster.device(device).gap);
    fingerprint.add(cluster.device(device).free_communication ? 1 : 0);
    fingerprint.add(cluster.is_cpu(device) ? 1 : 0);
    for (DeviceId to = 0; to < cluster.num_devices(); ++to) {
      add_link(fingerprint, cluster.link(device, to));
    }
  }
}

}  // namespace

void add_problem(Fingerprint& fingerprint, const Problem& problem) {
  add_ops(fingerprint, problem);
  add_cluster(fingerprint, problem.cluster());
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    for (OpId op = 0; op < problem.num_ops(); ++op) {
      add_number(fingerprint, problem.duration(op, device));
    }
  }
}

}  // namespace emplace
