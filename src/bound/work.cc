#include "bound/work.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace emplace {
namespace {

// Over items in the order of their tails, some of them present: for the best t, t * scale + the
// work of those present with at least that tail.
class TailTree {
 public:
  TailTree(std::size_t size, Wide scale)
      : leaves_(std::bit_ceil(std::max<std::size_t>(1, size))), scale_(scale) {
    nodes_.resize(2 * leaves_);
  }

  void insert(std::size_t place, const WorkItem& item) {
    std::size_t node = leaves_ + place;
    nodes_[node] = {item.work, static_cast<Wide>(item.tail) * scale_ + item.work};
    for (node /= 2; node > 0; node /= 2) {
      const Node& less = nodes_[2 * node];
      const Node& more = nodes_[2 * node + 1];
      nodes_[node] = {less.work + more.work, std::max(more.best, less.best + more.work)};
    }
  }

  Wide best() const { return nodes_[1].best; }

 private:
  struct Node {
    Wide work = 0;
    Wide best = 0;
  };
  std::size_t leaves_;
  Wide scale_;
  std::vector<Node> nodes_;
};

}  // namespace

Nanoseconds end_of_work(std::vector<WorkItem>& items, Wide scale, Wide spare) {
  std::sort(items.begin(), items.end(),
            [](const WorkItem& a, const WorkItem& b) { return a.tail < b.tail; });
  std::vector<std::uint32_t> by_head(items.size());
  std::iota(by_head.begin(), by_head.end(), 0U);
  std::sort(by_head.begin(), by_head.end(),
            [&](std::uint32_t a, std::uint32_t b) { return items[a].head > items[b].head; });
  TailTree tree(items.size(), scale);
  Wide most = 0;
  for (const std::uint32_t i : by_head) {
    tree.insert(i, items[i]);
    most = std::max(most, static_cast<Wide>(items[i].head) * scale + tree.best());
  }
  if (most <= spare) return 0;
  const Wide end = (most - spare + scale - 1) / scale;
  return end > static_cast<Wide>(kInfinite) ? kInfinite : static_cast<Nanoseconds>(end);
}

SharedWork::SharedWork(const BoundDag& dag) {
  constexpr double kUnit = 1U << 20U;
  std::vector<double> all(dag.num_classes(), 1);
  for (std::uint32_t node = 0; node < dag.size(); ++node) {
    for (std::size_t device_class = 0; device_class < dag.num_classes(); ++device_class) {
      const Nanoseconds length = dag.duration(node, device_class);
      all[device_class] += static_cast<double>(length == kInfinite ? dag.fastest(node) : length);
    }
  }
  const double least = *std::min_element(all.begin(), all.end());
  for (std::size_t device_class = 0; device_class < dag.num_classes(); ++device_class) {
    weight_.push_back(static_cast<Wide>(kUnit * (least / all[device_class])));
    const Wide devices = static_cast<Wide>(dag.class_size(device_class)) * weight_[device_class];
    scale_ += devices;
    spare_ += devices * static_cast<Wide>(dag.gap(device_class));
  }
}

Wide SharedWork::of(const BoundDag& dag, std::uint32_t node) const {
  bool found = false;
  Wide least = 0;
  for (std::size_t device_class = 0; device_class < dag.num_classes(); ++device_class) {
    const Nanoseconds length = dag.duration(node, device_class);
    if (length == kInfinite) continue;
    const Wide work =
        length == 0 ? 0 : weight_[device_class] * static_cast<Wide>(length + dag.gap(device_class));
    least = found ? std::min(least, work) : work;
    found = true;
  }
  return least;
}

}  // namespace emplace
