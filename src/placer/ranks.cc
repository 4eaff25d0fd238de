// The ranks of Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling
// for heterogeneous computing" (2002), in one pass over the edges each. Ops are numbered in
// topological order, so the passes need no queue.
//
// A tensor between two ops that must share a device is never sent and so adds nothing; otherwise
// each view on a path would count the same bytes once more.
#include "placer/ranks.h"

#include <algorithm>

namespace emplace {
namespace {

Nanoseconds edge_time(const Problem& problem, TensorId tensor, OpId producer, OpId consumer,
                      bool with_transfers) {
  if (!with_transfers || problem.group_of(producer) == problem.group_of(consumer)) return 0;
  return problem.mean_transfer_time(tensor);
}

}  // namespace

std::vector<Nanoseconds> upward_ranks(const Problem& problem, bool with_transfers) {
  const Graph& graph = problem.graph();
  // Holds the longest tail behind an op until the op itself is reached.
  std::vector<Nanoseconds> up(graph.num_ops(), 0);
  for (OpId op = graph.num_ops(); op-- > 0;) {
    up[op] += problem.mean_duration(op);
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      const Nanoseconds edge = edge_time(problem, tensor, producer, op, with_transfers);
      up[producer] = std::max(up[producer], edge + up[op]);
    }
    for (const OpId before : graph.after(op)) up[before] = std::max(up[before], up[op]);
  }
  return up;
}

std::vector<Nanoseconds> downward_ranks(const Problem& problem, bool with_transfers) {
  const Graph& graph = problem.graph();
  std::vector<Nanoseconds> down(graph.num_ops(), 0);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const TensorId tensor : graph.inputs(op)) {
      const OpId producer = graph.producer(tensor);
      const Nanoseconds edge = edge_time(problem, tensor, producer, op, with_transfers);
      down[op] = std::max(down[op], down[producer] + problem.mean_duration(producer) + edge);
    }
    for (const OpId before : graph.after(op)) {
      down[op] = std::max(down[op], down[before] + problem.mean_duration(before));
    }
  }
  return down;
}

}  // namespace emplace
