// A Problem made ready to be simulated many times: what never changes between placements, laid out
// in the order in which the engine reads it.
//
// Nodes (graph/nodes.h) are what takes part in the event loop. A view that is folded into the node
// that makes what it shows has its outputs as further tensors of that node, which are sent with
// their own size and order. Sources stay nodes, but finish before the loop begins. The problem must
// outlive the program.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

namespace emplace {

struct SimProgram {
  explicit SimProgram(const Problem& problem);

  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::uint32_t kLastEdge = 0x80000000;  // marks the last edge of a tensor

  std::uint32_t num_nodes() const { return static_cast<std::uint32_t>(op_of_node.size()); }
  std::uint32_t num_tensors() const { return static_cast<std::uint32_t>(tensor_id.size()); }
  std::uint32_t num_slots() const { return num_devices + num_channels; }

  struct NodeMemory {
    Bytes alloc_at_start = 0;  // temporaries and outputs, less what they are written over
    Bytes free_at_finish = 0;  // temporaries and outputs that nobody reads, less the same
  };

  // Nodes, in the order of their ops.
  const std::vector<OpId>& op_of_node;
  const std::vector<std::uint32_t>& node_of_op;
  std::vector<std::uint32_t> in_degree;  // edges and control edges from nodes that are no sources
  std::vector<std::uint8_t> is_source;
  std::vector<std::uint32_t> sources;         // finish at time 0 without waiting
  std::vector<std::uint32_t> ready_at_start;  // the others that wait for sources at most
  struct SourceTensor {
    std::uint32_t tensor;
    std::uint32_t node;
    std::uint32_t first_edge;
  };
  std::vector<SourceTensor> source_tensors;  // in the order of tensors, as channels queue them
  std::vector<NodeMemory> memory;
  Csr<std::uint32_t> control;          // node -> nodes that may start after it
  std::vector<Nanoseconds> durations;  // [column][node]
  std::vector<std::uint32_t> column_of_device;
  // By node: how long a step lasts at least after its finish, whatever the placement.
  std::vector<Nanoseconds> least_rest;

  // Edges: node n's are edge_begin[n] .. edge_begin[n + 1], tensor by tensor; a tensor's are in
  // ascending order of consumer and its last carries kLastEdge.
  std::vector<std::uint32_t> edge_begin;
  std::vector<std::uint32_t> edge_target;

  // Tensors that someone reads, in the order of the edges; node n's start at tensor_begin[n].
  std::vector<std::uint32_t> tensor_begin;
  std::vector<TensorId> tensor_id;
  std::vector<Bytes> sole_bytes;                // memory whose only use is the tensor's only edge
  std::vector<std::uint32_t> tensor_root;       // memory with several uses, or kNone
  std::vector<Bytes> copy_bytes;                // memory of a copy on another device
  std::vector<Nanoseconds> transfer_durations;  // [link class][tensor]

  // Memory that lives from its producer's start until the last of its uses, views' included.
  std::vector<Bytes> root_bytes;
  std::vector<std::uint32_t> nodes_with_roots;  // whose tensors lie in some root

  TensorId num_graph_tensors = 0;

  // Ops with memory for the whole step.
  std::vector<OpId> resident_ops;
  std::vector<Bytes> resident_bytes;

  struct Pair {
    ChannelId channel = kNoChannel;
    std::uint32_t link_class = 0;
    Nanoseconds hold = 0;
    bool multicast = false;
  };
  std::uint32_t num_devices = 0;
  std::uint32_t num_channels = 0;
  int slot_bits = 0;  // a running item is keyed by end_time << slot_bits | slot
  std::vector<Pair> pairs;
  std::vector<std::uint8_t> unlimited;  // by channel: carries any number of transfers at once
  std::vector<Nanoseconds> gaps;
  std::vector<Bytes> capacities;

  // What the fastest engine does not know, and whether it occurs: gaps, holds, multicast, unlimited
  // channels and transfers of no length; ops of no length.
  bool special = false;
  bool instants = false;

 private:
  void lay_out_edges(const Problem& problem);
  void lay_out_control(const Problem& problem);
  void lay_out_cluster(const Problem& problem);
  void lay_out_durations(const Problem& problem);
  void lay_out_memory(const Problem& problem);
  void find_roots(const Graph& graph, const std::vector<TensorId>& holder,
                  const std::vector<std::uint32_t>& uses);
  void find_sources(const Problem& problem);
  void find_starts();
  void find_rests(const Problem& problem);
};

}  // namespace emplace
