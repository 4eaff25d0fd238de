// Lays out once what every run reads. Nothing here changes what docs/simulator.md says: folding a
// view is exact since it starts and ends when its producer finishes, on the same device, and its
// outputs queue as tensors of that node, in their own order. Memory that views share is one root,
// which lives until the last use of any of them; memory with one use needs no search for its last.
//
// Edges lie tensor by tensor in the order in which the engine sends, consumers ascending, and the
// last edge of a tensor is marked in its top bit, so that the loop reads one array. Devices with
// equal times share a column of durations, and pairs with equal links a column of transfer times.
// `special` and `instants` say which engine will do. Refuses horizons that do not fit a 64-bit key
// beside the slot. O(ops * devices + edges + tensors * link classes).
#include "sim/program.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "base/error.h"

namespace emplace {
namespace {

bool waits_for_nothing(const Graph& graph, OpId op) {
  return graph.inputs(op).empty() && graph.after(op).empty();
}

bool is_persistent(const Graph& graph, OpId op) {
  const OpRole role = graph.role(op);
  return role == OpRole::kParameter || role == OpRole::kBuffer;
}

}  // namespace

SimProgram::SimProgram(const Problem& problem)
    : op_of_node(problem.nodes().op), node_of_op(problem.nodes().of_op) {
  num_devices = problem.num_devices();
  num_channels = problem.cluster().num_channels();
  num_graph_tensors = problem.graph().num_tensors();
  slot_bits = std::bit_width(num_slots());
  if (problem.horizon() >> (63 - slot_bits) != 0) {
    fail(ErrorKind::kUnsupported, "graph '{}': a step could last {} ns, more than can be simulated",
         problem.graph().name(), problem.horizon());
  }
  find_sources(problem);
  lay_out_edges(problem);
  lay_out_control(problem);
  lay_out_cluster(problem);
  lay_out_durations(problem);
  lay_out_memory(problem);
  find_starts();
  find_rests(problem);
}

void SimProgram::find_sources(const Problem& problem) {
  const Graph& graph = problem.graph();
  for (std::uint32_t node = 0; node < num_nodes(); ++node) {
    const OpId op = op_of_node[node];
    is_source.push_back(graph.is_source(op) && waits_for_nothing(graph, op) ? 1 : 0);
    if (is_source[node] != 0) sources.push_back(node);
  }
}

void SimProgram::lay_out_edges(const Problem& problem) {
  const Graph& graph = problem.graph();
  const auto folded = [&](OpId op) { return op_of_node[node_of_op[op]] != op; };

  std::vector<std::pair<std::uint32_t, TensorId>> tensors;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const TensorId tensor : graph.outputs(op)) tensors.emplace_back(node_of_op[op], tensor);
  }
  const auto tensors_of_node = Csr<TensorId>::from_pairs(num_nodes(), tensors);

  in_degree.assign(num_nodes(), 0);
  edge_begin.push_back(0);
  tensor_begin.push_back(0);
  for (std::uint32_t node = 0; node < num_nodes(); ++node) {
    for (const TensorId tensor : tensors_of_node[node]) {
      const std::size_t first = edge_target.size();
      for (const OpId consumer : graph.consumers(tensor)) {
        if (folded(consumer)) continue;
        edge_target.push_back(node_of_op[consumer]);
        in_degree[node_of_op[consumer]] += is_source[node] != 0 ? 0 : 1;
      }
      if (edge_target.size() == first) continue;
      edge_target.back() |= kLastEdge;
      tensor_id.push_back(tensor);
      copy_bytes.push_back(graph.memory_bytes(tensor));
    }
    edge_begin.push_back(static_cast<std::uint32_t>(edge_target.size()));
    tensor_begin.push_back(num_tensors());
  }
}

void SimProgram::lay_out_control(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_of_nodes;
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const OpId before : graph.after(op)) {
      if (is_source[node_of_op[before]] != 0) continue;
      pairs_of_nodes.emplace_back(node_of_op[before], node_of_op[op]);
      ++in_degree[node_of_op[op]];
    }
  }
  if (!pairs_of_nodes.empty()) {
    control = Csr<std::uint32_t>::from_pairs(num_nodes(), pairs_of_nodes);
  }
  // Edges from sources count too once they lead to another device.
  constexpr std::uint32_t kMaxInDegree = 1U << 22;
  std::vector<std::uint32_t> waits = in_degree;
  for (const std::uint32_t node : sources) {
    for (std::uint32_t edge = edge_begin[node]; edge < edge_begin[node + 1]; ++edge) {
      ++waits[edge_target[edge] & ~kLastEdge];
    }
  }
  const auto widest = std::max_element(waits.begin(), waits.end());
  if (*widest >= kMaxInDegree) {
    fail(ErrorKind::kUnsupported,
         "op '{}': waits for {} others, more than the {} that are supported",
         graph.op_name(op_of_node[static_cast<std::size_t>(widest - waits.begin())]), *widest,
         kMaxInDegree - 1);
  }
}

void SimProgram::lay_out_cluster(const Problem& problem) {
  const Cluster& cluster = problem.cluster();
  const Graph& graph = problem.graph();
  // Pairs whose transfers last equally long share a class.
  std::map<std::pair<Nanoseconds, std::int64_t>, std::uint32_t> classes;
  const auto class_of = [&](const Link& link) {
    const auto [entry, added] = classes.try_emplace({link.latency, link.bandwidth},
                                                    static_cast<std::uint32_t>(classes.size()));
    if (!added) return entry->second;
    for (const TensorId tensor : tensor_id) {
      transfer_durations.push_back(transfer_time(link, graph.bytes(tensor)));
      special = special || transfer_durations.back() == 0;
    }
    return entry->second;
  };
  for (DeviceId from = 0; from < cluster.num_devices(); ++from) {
    gaps.push_back(cluster.device(from).gap);
    capacities.push_back(cluster.device(from).memory);
    special = special || gaps.back() > 0;
    for (DeviceId to = 0; to < cluster.num_devices(); ++to) {
      const Link* link = cluster.link(from, to);
      if (link == nullptr) {
        pairs.emplace_back();
        continue;
      }
      pairs.push_back({link->channel, class_of(*link), link->hold, link->multicast});
      special = special || link->hold > 0 || link->multicast || link->unlimited;
    }
  }
  for (ChannelId channel = 0; channel < num_channels; ++channel) {
    unlimited.push_back(cluster.is_unlimited(channel) ? 1 : 0);
  }
}

void SimProgram::lay_out_durations(const Problem& problem) {
  // Devices that agree on every op share a column, as in the Problem.
  std::uint32_t columns = 0;
  for (DeviceId device = 0; device < problem.num_devices(); ++device) {
    const auto is_in = [&](std::uint32_t column) {
      auto known =
          durations.begin() + static_cast<std::ptrdiff_t>(column * std::size_t{num_nodes()});
      return std::all_of(op_of_node.begin(), op_of_node.end(),
                         [&](OpId op) { return problem.duration(op, device) == *known++; });
    };
    std::uint32_t column = 0;
    while (column < columns && !is_in(column)) ++column;
    column_of_device.push_back(column);
    if (column < columns) continue;
    ++columns;
    for (const OpId op : op_of_node) durations.push_back(problem.duration(op, device));
  }
}

void SimProgram::lay_out_memory(const Problem& problem) {
  const Graph& graph = problem.graph();
  // The tensor whose memory each tensor lies in; views, in topological order, ask their input's.
  std::vector<TensorId> holder(graph.num_tensors());
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const TensorId tensor : graph.outputs(op)) {
      holder[tensor] = graph.is_view(op) ? holder[graph.inputs(op)[0]] : tensor;
    }
  }
  const auto lives_in_step = [&](TensorId tensor) {
    return !is_persistent(graph, graph.producer(tensor)) && graph.memory_bytes(tensor) > 0;
  };
  std::vector<std::uint32_t> uses(graph.num_tensors(), 0);  // edges from what lies in the tensor
  for (std::uint32_t tensor = 0, edge = 0; tensor < num_tensors(); ++tensor) {
    do {
      ++uses[holder[tensor_id[tensor]]];
    } while ((edge_target[edge++] & kLastEdge) == 0);
  }
  find_roots(graph, holder, uses);

  memory.resize(num_nodes());
  for (std::uint32_t node = 0; node < num_nodes(); ++node) {
    const OpId op = op_of_node[node];
    // What the op writes over is gone when it starts, and its last user is the op's finish.
    const Bytes passing = graph.temp_bytes(op) - problem.overwritten_bytes(op);
    memory[node].alloc_at_start += passing;
    memory[node].free_at_finish += passing;
  }
  for (TensorId tensor = 0; tensor < graph.num_tensors(); ++tensor) {
    if (holder[tensor] != tensor || !lives_in_step(tensor)) continue;
    const std::uint32_t node = node_of_op[graph.producer(tensor)];
    memory[node].alloc_at_start += graph.memory_bytes(tensor);
    if (uses[tensor] == 0) memory[node].free_at_finish += graph.memory_bytes(tensor);
  }
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    if (problem.resident_bytes(op) == 0) continue;
    resident_ops.push_back(op);
    resident_bytes.push_back(problem.resident_bytes(op));
  }
}

// Memory with one use needs no search for its last: it goes when that use is over.
void SimProgram::find_roots(const Graph& graph, const std::vector<TensorId>& holder,
                            const std::vector<std::uint32_t>& uses) {
  std::vector<std::uint32_t> root_of(graph.num_tensors(), kNone);
  for (const TensorId tensor : tensor_id) {
    const TensorId held = holder[tensor];
    const Bytes bytes = is_persistent(graph, graph.producer(held)) ? 0 : graph.memory_bytes(held);
    sole_bytes.push_back(uses[held] == 1 ? bytes : 0);
    if (bytes > 0 && uses[held] > 1 && root_of[held] == kNone) {
      root_of[held] = static_cast<std::uint32_t>(root_bytes.size());
      root_bytes.push_back(bytes);
    }
    tensor_root.push_back(root_of[held]);
  }
  for (std::uint32_t node = 0; node < num_nodes(); ++node) {
    const auto first = tensor_root.begin() + tensor_begin[node];
    const auto last = tensor_root.begin() + tensor_begin[node + 1];
    if (std::any_of(first, last, [](std::uint32_t root) { return root != kNone; })) {
      nodes_with_roots.push_back(node);
    }
  }
}

void SimProgram::find_starts() {
  for (std::uint32_t node = 0; node < num_nodes(); ++node) {
    if (is_source[node] != 0) continue;
    if (in_degree[node] == 0) ready_at_start.push_back(node);
    for (std::size_t at = node; at < durations.size(); at += num_nodes()) {
      instants = instants || durations[at] == 0;
    }
  }
  for (const std::uint32_t node : sources) {
    std::uint32_t edge = edge_begin[node];
    for (std::uint32_t tensor = tensor_begin[node]; tensor < tensor_begin[node + 1]; ++tensor) {
      source_tensors.push_back({tensor, node, edge});
      while ((edge_target[edge++] & kLastEdge) == 0) {
      }
    }
  }
  std::sort(source_tensors.begin(), source_tensors.end(),
            [&](const SourceTensor& a, const SourceTensor& b) {
              return tensor_id[a.tensor] < tensor_id[b.tensor];
            });
}

// The longest way on, on the fastest devices and without transfers. Consumers come after their
// producers.
void SimProgram::find_rests(const Problem& problem) {
  least_rest.assign(num_nodes(), 0);
  for (std::uint32_t node = num_nodes(); node-- > 0;) {
    const auto follow = [&](std::uint32_t later) {
      const Nanoseconds way = problem.fastest_duration(op_of_node[later]) + least_rest[later];
      least_rest[node] = std::max(least_rest[node], way);
    };
    for (std::uint32_t edge = edge_begin[node]; edge < edge_begin[node + 1]; ++edge) {
      follow(edge_target[edge] & ~kLastEdge);
    }
    if (control.size() > 0) {
      for (const std::uint32_t later : control[node]) follow(later);
    }
  }
}

}  // namespace emplace
