// A SimProgram read backwards: what re-evaluating moves asks besides (sim/incremental.h). Fixed per
// Problem.
#pragma once

#include <cstdint>
#include <vector>

#include "base/csr.h"
#include "base/ids.h"
#include "base/units.h"

#include "sim/program.h"

namespace emplace {

struct MoveTables {
  MoveTables(const SimProgram& program, const Problem& problem);

  // Node n's inputs are numbered input_begin[n] .. input_begin[n + 1].
  std::vector<std::uint32_t> input_begin;
  std::vector<std::uint32_t> input_tensor;   // by input
  std::vector<std::uint32_t> input_of_edge;  // by edge
  std::vector<std::uint32_t> tensor_edges;   // tensor t's edges start at tensor_edges[t]
  std::vector<std::uint32_t> tensor_node;    // by tensor: its producer
  std::vector<std::vector<std::uint32_t>> tensors_of_root;
  Csr<std::uint32_t> controllers;  // node -> nodes that it may start after; empty without any

  // Whether some placement may need more memory than some device has.
  bool memory_matters = false;

 private:
  void lay_out_inputs(const SimProgram& program);
  void lay_out_control(const SimProgram& program);
  bool may_overflow(const SimProgram& program, const Graph& graph) const;
};

}  // namespace emplace
