#include "bound/ends.h"

#include <algorithm>

namespace emplace {
namespace {

// The work of an op's ancestors, shared by all devices, is done before the op starts.
class AncestorWork {
 public:
  explicit AncestorWork(const BoundDag& dag) : shared_(dag), rest_(dag.size(), kUnseen) {}

  Nanoseconds start(const BoundEnd& end, std::uint32_t target) {
    const BoundDag& dag = end.dag;
    items_.clear();
    rest_[target] = 0;
    for (std::uint32_t node = target + 1; node-- > 0;) {
      if (rest_[node] == kUnseen) continue;
      const Nanoseconds rest = rest_[node];
      rest_[node] = kUnseen;
      Nanoseconds whole = rest;
      if (node != target) {
        items_.push_back({end.starts.earliest(dag, node), rest, shared_.of(dag, node)});
        whole = later(rest, dag.fastest(node));
      }
      for (const BoundArc& arc : dag.before(node)) {
        rest_[arc.from] = std::max(rest_[arc.from], whole);
      }
    }
    return end_of_work(items_, shared_.scale(), shared_.spare());
  }

 private:
  static constexpr Nanoseconds kUnseen = -1;
  SharedWork shared_;
  std::vector<Nanoseconds> rest_;  // from an ancestor's end to the target's start
  std::vector<WorkItem> items_;
};

}  // namespace

BoundEnds::BoundEnds(BoundDag dag) : heads_(std::move(dag)), tails_(heads_.dag.reversed()) {}

void BoundEnds::propagate() {
  heads_.starts.propagate(heads_.dag);
  tails_.starts.propagate(tails_.dag);
}

std::vector<Nanoseconds> BoundEnds::through() const {
  std::vector<Nanoseconds> result(dag().size(), kInfinite);
  for (std::uint32_t node = 0; node < dag().size(); ++node) {
    for (std::size_t device_class = 0; device_class < dag().num_classes(); ++device_class) {
      result[node] = std::min(result[node], through(node, device_class));
    }
  }
  return result;
}

Nanoseconds BoundEnds::path() const {
  const std::vector<Nanoseconds> all = through();
  return all.empty() ? 0 : *std::max_element(all.begin(), all.end());
}

Nanoseconds BoundEnds::work() const {
  const SharedWork shared(dag());
  std::vector<WorkItem> items;
  items.reserve(dag().size());
  for (std::uint32_t node = 0; node < dag().size(); ++node) {
    const Wide work = shared.of(dag(), node);
    if (work == 0) continue;
    items.push_back({heads_.starts.earliest(heads_.dag, node),
                     tails_.starts.earliest(tails_.dag, dag().mirrored(node)), work});
  }
  return end_of_work(items, shared.scale(), shared.spare());
}

void BoundEnds::merge(const std::function<GroupId(GroupId)>& label) {
  heads_.dag.merge(label);
  tails_.dag.merge(label);
}

void BoundEnds::forbid(std::uint32_t node, std::size_t device_class) {
  heads_.dag.forbid(node, device_class);
  tails_.dag.forbid(dag().mirrored(node), device_class);
}

bool raise_starts(BoundEnd& end, const Pass& pass, const std::vector<Nanoseconds>& through,
                  const std::function<bool()>& go_on) {
  constexpr std::uint32_t kNodesBetweenQuestions = 64;
  NearAncestors near_ancestors(end.dag);
  AncestorWork ancestors(end.dag);
  const Nanoseconds longest =
      through.empty() ? 0 : *std::max_element(through.begin(), through.end());
  std::size_t on_long_ways = 0;
  for (std::uint32_t node = 0; node < end.dag.size(); ++node) {
    end.starts.propagate(end.dag, node);
    if (pass.ancestors > 0) near_ancestors.raise(end.dag, end.starts, node, pass.ancestors);
    bool asked = node % kNodesBetweenQuestions == 0;
    if (pass.stride > 0 && through[node] >= longest - longest / 4 &&
        on_long_ways++ % pass.stride == 0) {
      const Nanoseconds start = ancestors.start(end, node);
      for (std::size_t device_class = 0; device_class < end.dag.num_classes(); ++device_class) {
        end.starts.raise(node, device_class, start);
      }
      asked = true;
    }
    if (asked && !go_on()) return false;
  }
  return true;
}

}  // namespace emplace
