#include "bound/refute.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/union_find.h"

#include "bound/work.h"

namespace emplace {
namespace {

class Refutation {
 public:
  Refutation(BoundEnds& ends, Nanoseconds limit, std::span<const HeldAt> held)
      : ends_(ends), limit_(limit), held_(held) {}

  // One round of conclusions; whether there were new ones.
  bool conclude() {
    changed_ = false;
    forbid_classes();
    merge_groups();
    forbid_by_group();
    return changed_;
  }

  bool nothing_left() const { return ends_.path() >= limit_ || ends_.work() >= limit_; }

 private:
  const BoundDag& dag() const { return ends_.dag(); }

  void forbid(std::uint32_t node, std::size_t device_class) {
    if (dag().duration(node, device_class) == kInfinite) return;
    ends_.forbid(node, device_class);
    changed_ = true;
  }

  void forbid_classes() {
    std::vector<bool> out(dag().num_groups() * dag().num_classes());
    const auto at = [&](std::uint32_t node, std::size_t device_class) {
      return dag().group(node) * dag().num_classes() + device_class;
    };
    for (std::uint32_t node = 0; node < dag().size(); ++node) {
      for (std::size_t device_class = 0; device_class < dag().num_classes(); ++device_class) {
        if (ends_.through(node, device_class) >= limit_) out[at(node, device_class)] = true;
      }
    }
    for (std::uint32_t node = 0; node < dag().size(); ++node) {
      for (std::size_t device_class = 0; device_class < dag().num_classes(); ++device_class) {
        if (out[at(node, device_class)]) forbid(node, device_class);
      }
    }
  }

  // The step in which the tensor of this arc is sent.
  Nanoseconds with_crossing(const BoundArc& arc, std::uint32_t node) const {
    Nanoseconds least = kInfinite;
    for (std::size_t from = 0; from < dag().num_classes(); ++from) {
      const Nanoseconds sent = later(ends_.head(arc.from, from), dag().duration(arc.from, from));
      for (std::size_t to = 0; to < dag().num_classes(); ++to) {
        if (!dag().apart(from, to)) continue;
        const Nanoseconds rest = later(dag().duration(node, to), ends_.tail(node, to));
        least = std::min(least, later(later(sent, dag().crossing(arc, from, to)), rest));
      }
    }
    return least;
  }

  void merge_groups() {
    UnionFind united(dag().num_groups());
    bool any = false;
    for (std::uint32_t node = 0; node < dag().size(); ++node) {
      for (const BoundArc& arc : dag().before(node)) {
        if (dag().group(arc.from) == dag().group(node)) continue;
        if (with_crossing(arc, node) < limit_) continue;
        any = united.unite(dag().group(arc.from), dag().group(node)) || any;
      }
    }
    if (!any) return;
    ends_.merge([&](GroupId group) { return united.find(group); });
    changed_ = true;
  }

  // The most that a group's device holds at one of the moments.
  std::vector<Bytes> memory_of_groups() const {
    std::vector<Bytes> most(dag().num_groups());
    for (const HeldAt& moment : held_) {
      std::vector<Bytes> bytes(dag().num_groups());
      for (GroupId group = 0; group < dag().num_groups(); ++group) {
        bytes[dag().label(group)] += moment.by_group[group];
      }
      for (const HeldAt::Shared& shared : moment.shared) {
        const GroupId from = dag().label(shared.from);
        if (from == dag().label(shared.to)) bytes[from] += shared.bytes;
      }
      std::transform(most.begin(), most.end(), bytes.begin(), most.begin(),
                     [](Bytes a, Bytes b) { return std::max(a, b); });
    }
    return most;
  }

  // What shares a device runs there one after another, and lies in its memory.
  void forbid_by_group() {
    std::vector<std::uint32_t> nodes(dag().size());
    std::iota(nodes.begin(), nodes.end(), 0U);
    std::stable_sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) {
      return dag().group(a) < dag().group(b);
    });
    const std::vector<Bytes> most_held = memory_of_groups();
    std::vector<WorkItem> items;
    for (std::size_t first = 0, last = 0; first < nodes.size(); first = last) {
      while (last < nodes.size() && dag().group(nodes[last]) == dag().group(nodes[first])) ++last;
      if (last - first < 2 && held_.empty()) continue;
      const std::span<const std::uint32_t> group(nodes.data() + first, last - first);
      for (std::size_t device_class = 0; device_class < dag().num_classes(); ++device_class) {
        const bool fits = most_held[dag().group(group[0])] <= dag().memory(device_class);
        if (fits && end_of_group(group, device_class, items) < limit_) continue;
        for (const std::uint32_t node : group) forbid(node, device_class);
      }
    }
  }

  Nanoseconds end_of_group(std::span<const std::uint32_t> group, std::size_t device_class,
                           std::vector<WorkItem>& items) const {
    items.clear();
    for (const std::uint32_t node : group) {
      const Nanoseconds length = dag().duration(node, device_class);
      if (length == kInfinite) return kInfinite;
      if (length == 0) continue;
      items.push_back({ends_.head(node, device_class), ends_.tail(node, device_class),
                       static_cast<Wide>(length + dag().gap(device_class))});
    }
    return end_of_work(items, 1, static_cast<Wide>(dag().gap(device_class)));
  }

  BoundEnds& ends_;
  Nanoseconds limit_;
  std::span<const HeldAt> held_;
  bool changed_ = false;
};

}  // namespace

bool refutes(BoundEnds& ends, Nanoseconds limit, std::span<const HeldAt> held,
             std::size_t ancestors, const std::function<bool()>& go_on) {
  constexpr int kRounds = 20;
  Refutation refutation(ends, limit, held);
  bool looked_near = false;
  for (int round = 0; round < kRounds; ++round) {
    ends.propagate();
    if (refutation.nothing_left()) return true;
    if (!go_on()) return false;
    if (refutation.conclude()) {
      looked_near = false;
      continue;
    }
    if (looked_near || ancestors == 0) return false;
    // The costly look at neighbours only where nothing simpler helps.
    raise_starts(ends.heads(), {.ancestors = ancestors}, {}, go_on);
    raise_starts(ends.tails(), {.ancestors = ancestors}, {}, go_on);
    looked_near = true;
  }
  return false;
}

}  // namespace emplace
