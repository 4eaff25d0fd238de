// Elementwise chains as one kernel each, as compilers make them: a tensor that one elementwise op
// hands to another, and to nothing else, is neither written nor read, and only one kernel is
// started. A chain is a tree of ops that ends in its last op; nothing else leaves it.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "cost/op_work.h"

namespace emplace {

class Fusion {
 public:
  // Ops are fused only where the same devices are allowed to both and neither has a colocation that
  // the other has not, so that fusing takes no placement away.
  Fusion(const Graph& graph, WorkReader& reader);

  // The last op of the chain that the op is of; the op itself where it is of none.
  OpId last_of(OpId op) const { return last_[op]; }

  // The ops' durations on a device of this kind, turned into those of the fused kernels: the last
  // op of a chain takes the time of all, less what the cost model says that fusing saves; the
  // others take none.
  void apply(const DeviceKind& kind, std::span<Nanoseconds> durations) const;

 private:
  std::vector<OpId> last_;
  std::vector<OpWork> work_;   // by op, of the ops of chains alone
  std::vector<OpWork> fused_;  // by op, of the whole chain at its last op
};

}  // namespace emplace
