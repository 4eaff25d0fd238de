// Where a dimension whose parts are on several devices goes, op by op.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/graph.h"

namespace emplace {

// A dimension of which every device has an equal part; or, with several blocks, a part of each of
// the blocks that lie one after the other in it, as heads do where examples come first.
struct CutDimension {
  int dimension = 0;
  std::int64_t blocks = 1;

  friend bool operator==(const CutDimension&, const CutDimension&) = default;
};

// Where the op has what lies in a cut dimension of one of its inputs, so that each device can do
// its part alone; nothing where the op tells apart what lies in it (Split, Slice), adds it up or
// puts it beside something else, or where that is not known.
std::optional<CutDimension> cut_after(const Graph& graph, OpId op, std::size_t input,
                                      const CutDimension& cut, std::int64_t devices);

}  // namespace emplace
