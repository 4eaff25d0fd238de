// Which inputs nodes still miss while moves are re-evaluated. They are counted when the first of a
// segment arrives, from what had arrived in the base run when the segment began: nothing that the
// moves touch is under way then, so the same has arrived in the candidate.
#pragma once

#include <cstdint>

#include "sim/incremental_tables.h"
#include "sim/incremental_workspace.h"
#include "sim/program.h"

namespace emplace {

class MissingInputs {
 public:
  MissingInputs(const SimProgram& program, const MoveTables& tables, MoveWorkspace& workspace)
      : p_(program), t_(tables), w_(workspace) {}

  // One input, or control dependency, more is there; true when it was the last.
  [[gnu::always_inline]] bool arrive(std::uint32_t node) {
    auto& state = nodes_[node];
    if (state.segment != w_.segment) {
      state.segment = w_.segment;
      state.missing = w_.origin == 0 ? count_at_start(node) : count(node);
    }
    return --state.missing == 0;
  }

  // Before anything has arrived: all but what sources on the node's own device hold.
  std::uint32_t count_at_start(std::uint32_t node) const {
    std::uint32_t missing = p_.in_degree[node];
    for (auto input = input_begin_[node]; input < input_begin_[node + 1]; ++input) {
      const std::uint32_t producer = t_.tensor_node[t_.input_tensor[input]];
      if (p_.is_source[producer] != 0 && nodes_[producer].device != nodes_[node].device) ++missing;
    }
    return missing;
  }

  // Counts the node's as at the start, unless that has been done; true when it did and there are
  // none.
  bool recount(std::uint32_t node) {
    auto& state = nodes_[node];
    if (state.segment == w_.segment) return false;
    state.segment = w_.segment;
    state.missing = count_at_start(node);
    return state.missing == 0;
  }

  // Counts all nodes' as at the start, but for sources: those are added as they are sent.
  void count_all() {
    for (std::uint32_t node = 0; node < p_.num_nodes(); ++node) {
      nodes_[node].segment = w_.segment;
      nodes_[node].missing = p_.in_degree[node];
    }
  }
  void add(std::uint32_t node) { ++nodes_[node].missing; }

 private:
  std::uint32_t count(std::uint32_t node) const {
    std::uint32_t missing = 0;
    const std::uint32_t end = input_begin_[node + 1];
    for (auto input = input_begin_[node]; input < end; ++input)
      missing += arrival_[input] > w_.origin ? 1 : 0;
    if (t_.controllers.size() > 0) {
      for (const std::uint32_t before : t_.controllers[node])
        missing += nodes_[before].finish > w_.origin ? 1 : 0;
    }
    return missing;
  }

  const SimProgram& p_;
  const MoveTables& t_;
  MoveWorkspace& w_;
  MoveWorkspace::Node* const nodes_ = w_.nodes.data();
  const std::uint32_t* const input_begin_ = t_.input_begin.data();
  const std::uint32_t* const arrival_ = w_.arrival.data();
};

}  // namespace emplace
