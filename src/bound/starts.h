// How early ops can start, by class of device: at the end of a path with its transfers, and after
// those that must have run on the same device before (starts.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

#include "bound/dag.h"

namespace emplace {

class EarliestStarts {
 public:
  explicit EarliestStarts(const BoundDag& dag)
      : classes_(dag.num_classes()), start_(dag.size() * dag.num_classes(), 0) {}

  Nanoseconds at(std::uint32_t node, std::size_t device_class) const {
    return start_[node * classes_ + device_class];
  }
  void raise(std::uint32_t node, std::size_t device_class, Nanoseconds start) {
    Nanoseconds& known = start_[node * classes_ + device_class];
    if (start > known) known = start;
  }
  // kInfinite where the op may not run.
  Nanoseconds end(const BoundDag& dag, std::uint32_t node, std::size_t device_class) const {
    return later(at(node, device_class), dag.duration(node, device_class));
  }
  // On whatever device.
  Nanoseconds earliest(const BoundDag& dag, std::uint32_t node) const;

  // What the op's predecessors say.
  void propagate(const BoundDag& dag, std::uint32_t node);
  void propagate(const BoundDag& dag) {
    for (std::uint32_t node = 0; node < dag.size(); ++node) propagate(dag, node);
  }

 private:
  std::size_t classes_;
  std::vector<Nanoseconds> start_;  // [node][class]
};

// Raises starts by what ops near each other on one device cost: an ancestor either shares the
// device of the op, and its time adds up with that of the others that do, or a transfer lies on
// the way.
class NearAncestors {
 public:
  explicit NearAncestors(const BoundDag& dag);
  ~NearAncestors();

  // Whose predecessors have been dealt with. Looks at no more than `most` ancestors.
  void raise(const BoundDag& dag, EarliestStarts& starts, std::uint32_t node, std::size_t most);

 private:
  struct Ancestor;
  Nanoseconds on_one_device(const BoundDag& dag, std::size_t device_class);
  Nanoseconds start_on(const BoundDag& dag, const EarliestStarts& starts, std::uint32_t node,
                       std::size_t device_class, std::size_t most);
  void look_back(const BoundDag& dag, std::uint32_t node, std::size_t device_class,
                 std::uint32_t target);

  // Of the ancestors in sight: the least time from their end to the target's start when they run
  // on its device, and when they do not.
  std::vector<Nanoseconds> on_;
  std::vector<Nanoseconds> off_;
  std::vector<bool> seen_;
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint32_t> open_;  // a heap: the latest in the order first
  std::vector<std::uint32_t> rank_;  // a topological order by earliest start
  std::vector<Ancestor> ancestors_;
  std::vector<Ancestor> on_device_;
};

}  // namespace emplace
