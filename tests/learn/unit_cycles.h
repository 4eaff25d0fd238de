// Whether units wait for each other in a circle.
#pragma once

#include <utility>
#include <vector>

#include "base/csr.h"

#include "learn/units/unit_graph.h"

namespace emplace::learn {

// Edges between the ops of different units, but for those of parameters and their views: whether
// going along them leads back. What precedence_of leaves out on cycles is in them.
inline bool has_cycle(const UnitGraph& units) {
  const Graph& graph = units.problem().graph();
  std::vector<std::pair<UnitId, UnitId>> edges;
  std::vector<std::size_t> missing(units.size(), 0);
  for (OpId op = 0; op < graph.num_ops(); ++op) {
    for (const TensorId tensor : graph.inputs(op)) {
      OpId from = graph.producer(tensor);
      while (graph.is_view(from)) from = graph.producer(graph.inputs(from)[0]);
      if (graph.is_source(from) || units.unit_of_op(from) == units.unit_of_op(op)) continue;
      edges.emplace_back(units.unit_of_op(from), units.unit_of_op(op));
      ++missing[units.unit_of_op(op)];
    }
  }
  const auto successors = Csr<UnitId>::from_pairs(units.size(), edges);
  std::vector<UnitId> ready;
  for (UnitId unit = 0; unit < units.size(); ++unit) {
    if (missing[unit] == 0) ready.push_back(unit);
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (const UnitId next : successors[ready[i]]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
  return ready.size() < units.size();
}

}  // namespace emplace::learn
