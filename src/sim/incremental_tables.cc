#include "sim/incremental_tables.h"

#include <algorithm>
#include <utility>

namespace emplace {
namespace {

constexpr std::uint32_t kLastEdge = SimProgram::kLastEdge;

}  // namespace

MoveTables::MoveTables(const SimProgram& program, const Problem& problem) {
  lay_out_inputs(program);
  lay_out_control(program);
  memory_matters = may_overflow(program, problem.graph());
}

void MoveTables::lay_out_inputs(const SimProgram& program) {
  const auto num_edges = static_cast<std::uint32_t>(program.edge_target.size());
  input_begin.assign(program.num_nodes() + 1, 0);
  for (const std::uint32_t target : program.edge_target) ++input_begin[(target & ~kLastEdge) + 1];
  for (std::uint32_t node = 0; node < program.num_nodes(); ++node)
    input_begin[node + 1] += input_begin[node];

  input_tensor.resize(num_edges);
  input_of_edge.resize(num_edges);
  tensor_node.resize(program.num_tensors());
  tensors_of_root.resize(program.root_bytes.size());
  std::vector<std::uint32_t> at(input_begin.begin(), input_begin.end() - 1);
  std::uint32_t edge = 0;
  for (std::uint32_t node = 0; node < program.num_nodes(); ++node) {
    for (auto tensor = program.tensor_begin[node]; tensor < program.tensor_begin[node + 1];
         ++tensor) {
      tensor_node[tensor] = node;
      tensor_edges.push_back(edge);
      if (const std::uint32_t root = program.tensor_root[tensor]; root != SimProgram::kNone)
        tensors_of_root[root].push_back(tensor);
      std::uint32_t target = 0;
      do {
        target = program.edge_target[edge];
        const std::uint32_t input = at[target & ~kLastEdge]++;
        input_tensor[input] = tensor;
        input_of_edge[edge++] = input;
      } while ((target & kLastEdge) == 0);
    }
  }
  tensor_edges.push_back(edge);
}

void MoveTables::lay_out_control(const SimProgram& program) {
  if (program.control.size() == 0) return;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t node = 0; node < program.num_nodes(); ++node) {
    for (const std::uint32_t later : program.control[node]) pairs.emplace_back(later, node);
  }
  controllers = Csr<std::uint32_t>::from_pairs(program.num_nodes(), pairs);
}

// On one device every tensor lies at most once, as the original or as a copy.
bool MoveTables::may_overflow(const SimProgram& program, const Graph& graph) const {
  Bytes left = *std::min_element(program.capacities.begin(), program.capacities.end());
  const auto take = [&](Bytes bytes) {
    if (left >= 0) left = bytes > left ? -1 : left - bytes;
  };
  for (const Bytes bytes : program.resident_bytes) take(bytes);
  for (const auto& memory : program.memory) take(memory.alloc_at_start);
  for (std::uint32_t tensor = 0; tensor < program.num_tensors(); ++tensor) {
    // Where a view is sent it takes memory of its own.
    if (graph.is_view(graph.producer(program.tensor_id[tensor]))) take(program.copy_bytes[tensor]);
  }
  return left < 0;
}

}  // namespace emplace
