// Memory that is in use somewhere while an op runs, whatever the placement and the schedule: what
// lasts the whole step, and every tensor that was made before the op and is needed by it or after
// it. Such a tensor lies on its producer's device or, once sent, on the devices of all those that
// still need it.
#pragma once

#include <algorithm>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "cost/problem.h"

namespace emplace {

struct AliveTensor {
  TensorId tensor = 0;  // not a view's
  Bytes bytes = 0;      // at least
  OpId needed_by = 0;   // one of those that still need it, rather a long one
};

struct AliveAt {
  OpId op = 0;
  Bytes own = 0;  // what the op writes and its temporaries, on its device
  std::vector<AliveTensor> tensors;
  Bytes total() const;  // of the op's own and the tensors
};

// The same by group: what a group's device holds, and what the device of one of two groups holds.
struct HeldAt {
  HeldAt(const Problem& problem, const AliveAt& alive);

  struct Shared {
    GroupId from = 0;
    GroupId to = 0;
    Bytes bytes = 0;
  };
  std::vector<Bytes> by_group;
  std::vector<Shared> shared;
};

class Liveness {
 public:
  explicit Liveness(const Problem& problem);

  // What a tensor is a view of, or the tensor itself; and whether that lasts the whole step.
  TensorId root(TensorId tensor) const { return root_[tensor]; }
  bool lasts(TensorId tensor) const { return lasting_[tensor]; }
  // The least that a device holds of a tensor that is there: a copy has its own size, and where it
  // was made lies all of what it is a view of.
  Bytes held(TensorId tensor) const {
    return std::min(graph_.memory_bytes(tensor), graph_.memory_bytes(root_[tensor]));
  }

  // Whether the op writes over the memory that the tensor lies in.
  bool overwrites(OpId op, TensorId tensor) const {
    const TensorId over = problem_.overwritten(op);
    return over != kNotOverwritten && root_[over] == root_[tensor];
  }

  // The op must take time on every device.
  AliveAt at(OpId op) const;
  // Of up to `tries` moments that look full; the one with the largest total first.
  std::vector<AliveAt> full_moments(std::size_t tries) const;

 private:
  std::vector<OpId> likely_moments(std::size_t tries) const;

  const Problem& problem_;
  const Graph& graph_;
  std::vector<TensorId> root_;  // by tensor: what it is a view of, or itself
  std::vector<bool> lasting_;
  std::vector<bool> at_once_;  // by op: over as soon as the step begins
};

}  // namespace emplace
