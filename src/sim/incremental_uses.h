// What is in memory while moves are re-evaluated. Memory with several uses is released when the
// last is over. How many are left is counted at the first of a segment that ends, from what the
// base run had finished when the segment began: nothing that the moves touch is under way then, so
// the same is true of the candidate.
#pragma once

#include "sim/incremental_tables.h"
#include "sim/incremental_workspace.h"
#include "sim/program.h"

namespace emplace {

class MemoryUses {
 public:
  using Workspace = MoveWorkspace;

  MemoryUses(const SimProgram& program, const MoveTables& tables, Workspace& workspace)
      : p_(program), t_(tables), w_(workspace) {}

  void change(std::uint32_t device, Bytes by) {
    w_.used[device] += by;
    if (w_.touched_at[device] == w_.tick) return;
    w_.touched_at[device] = w_.tick;
    w_.touched.push_back(device);
  }

  // The tensor exists, with that many uses ahead on its own device: consumers and transfers.
  void add_uses(std::uint32_t tensor, std::uint32_t uses) {
    if (const std::uint32_t root = p_.tensor_root[tensor]; root != kNone) uses_of(root) += uses;
  }

  // The node has finished.
  void release_inputs(std::uint32_t node, std::uint32_t device) {
    const std::uint32_t end = t_.input_begin[node + 1];
    for (std::uint32_t input = t_.input_begin[node]; input < end; ++input) {
      const std::uint32_t tensor = t_.input_tensor[input];
      if (w_.nodes[t_.tensor_node[tensor]].device == device) {
        end_use(tensor, device);
      } else {
        end_use_of_copy(tensor, input, device);
      }
    }
  }

  // A consumer on the tensor's own device has finished, or a transfer has ended.
  void end_use(std::uint32_t tensor, std::uint32_t device) {
    const std::uint32_t root = p_.tensor_root[tensor];
    if (root == kNone) {
      if (p_.sole_bytes[tensor] != 0) change(device, -p_.sole_bytes[tensor]);
    } else if (--uses_of(root) == 0) {
      change(device, -p_.root_bytes[root]);
    }
  }

 private:
  static constexpr std::uint32_t kNone = Workspace::kNone;
  static constexpr std::uint32_t kMore = Workspace::kMore;
  static constexpr std::uint32_t kLastEdge = SimProgram::kLastEdge;

  std::uint32_t& uses_of(std::uint32_t root) {
    auto& state = w_.roots[root];
    if (state.segment != w_.segment) {
      state.segment = w_.segment;
      state.uses = 0;
      for (const std::uint32_t tensor : t_.tensors_of_root[root]) state.uses += count_uses(tensor);
    }
    return state.uses;
  }

  std::uint32_t count_uses(std::uint32_t tensor) const {
    const auto& producer = w_.nodes[t_.tensor_node[tensor]];
    if (producer.finish > w_.origin) return 0;
    std::uint32_t uses = 0;
    for (auto edge = t_.tensor_edges[tensor]; edge < t_.tensor_edges[tensor + 1]; ++edge) {
      const auto& consumer = w_.nodes[p_.edge_target[edge] & ~kLastEdge];
      if (consumer.device == producer.device && consumer.finish > w_.origin) ++uses;
    }
    if (w_.touched_by_moves(tensor)) return uses;
    for (std::uint32_t made = w_.tensors[tensor].sent;
         made < w_.num_base_transfers && w_.transfers[made].tensor == tensor; ++made) {
      if (!w_.transfers[made].carried && w_.transfers[made].end > w_.origin) ++uses;
    }
    return uses;
  }

  void end_use_of_copy(std::uint32_t tensor, std::uint32_t input, std::uint32_t device) {
    std::uint32_t made = w_.input_transfer[input];
    if (w_.touched_by_moves(tensor)) {
      made = w_.tensors[tensor].made;
      while (w_.transfers[made].to != device) ++made;
    }
    auto& transfer = w_.transfers[made];
    if ((transfer.edges & kMore) != 0) {
      if (transfer.segment != w_.segment) {
        transfer.segment = w_.segment;
        transfer.uses = count_uses_of_copy(made);
      }
      if (--transfer.uses != 0) return;
    }
    change(device, -p_.copy_bytes[tensor]);
  }

  std::uint32_t count_uses_of_copy(std::uint32_t made) const {
    const std::uint32_t* next_edge = w_.next_edge_of(made);
    std::uint32_t uses = 0;
    for (std::uint32_t edges = w_.transfers[made].edges;; edges = next_edge[edges & ~kMore]) {
      const std::uint32_t consumer = p_.edge_target[edges & ~kMore] & ~kLastEdge;
      if (w_.nodes[consumer].finish > w_.origin) ++uses;
      if ((edges & kMore) == 0) return uses;
    }
  }

  const SimProgram& p_;
  const MoveTables& t_;
  Workspace& w_;
};

}  // namespace emplace
