// How early every op can start and how long before the end it must end: what most lower bounds are
// made of. All of it holds for every placement and schedule that the dag allows.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/units.h"

#include "bound/dag.h"
#include "bound/starts.h"
#include "bound/work.h"

namespace emplace {

// One direction: a dag, and the starts known so far.
struct BoundEnd {
  explicit BoundEnd(BoundDag of) : dag(std::move(of)), starts(dag) {}
  BoundDag dag;
  EarliestStarts starts;
};

class BoundEnds {
 public:
  explicit BoundEnds(BoundDag dag);

  const BoundDag& dag() const { return heads_.dag; }
  BoundEnd& heads() { return heads_; }
  BoundEnd& tails() { return tails_; }

  void propagate();

  Nanoseconds head(std::uint32_t node, std::size_t device_class) const {
    return heads_.starts.at(node, device_class);
  }
  Nanoseconds tail(std::uint32_t node, std::size_t device_class) const {
    return tails_.starts.at(dag().mirrored(node), device_class);
  }
  // The end of a step in which the op runs on a device of this class.
  Nanoseconds through(std::uint32_t node, std::size_t device_class) const {
    return later(later(head(node, device_class), dag().duration(node, device_class)),
                 tail(node, device_class));
  }

  // By node, on the best device for it.
  std::vector<Nanoseconds> through() const;
  // The longest of these.
  Nanoseconds path() const;
  // All work between its heads and tails, shared by all devices.
  Nanoseconds work() const;

  void merge(const std::function<GroupId(GroupId)>& label);
  void forbid(std::uint32_t node, std::size_t device_class);

 private:
  BoundEnd heads_;
  BoundEnd tails_;
};

// One pass over an end's ops in order: propagates, looks at the nearest `ancestors` of each op, and
// for every `stride`-th op on a long way (0: none) at the work of all its ancestors.
// `through` is, by node, the longest way through it. `go_on` is asked now and then; what was raised
// before it says no stays. Whether the pass came to its end.
struct Pass {
  std::size_t ancestors = 0;
  std::size_t stride = 0;
};
bool raise_starts(BoundEnd& end, const Pass& pass, const std::vector<Nanoseconds>& through,
                  const std::function<bool()>& go_on);

}  // namespace emplace
