// Starts along paths with transfers, and the argument of Papadimitriou and Yannakakis ("Towards an
// architecture-independent analysis of parallel algorithms", SIAM J. Computing 19(2), 1990) for
// ops that exist once: if op v starts before time e, every ancestor whose result could not arrive
// from elsewhere by e runs on v's device, and so they run there one after another.
#include "bound/starts.h"

#include <algorithm>
#include <numeric>

namespace emplace {

Nanoseconds EarliestStarts::earliest(const BoundDag& dag, std::uint32_t node) const {
  Nanoseconds best = kInfinite;
  for (std::size_t device_class = 0; device_class < classes_; ++device_class) {
    if (dag.duration(node, device_class) != kInfinite)
      best = std::min(best, at(node, device_class));
  }
  return best;
}

void EarliestStarts::propagate(const BoundDag& dag, std::uint32_t node) {
  for (const BoundArc& arc : dag.before(node)) {
    const bool one_group = dag.group(arc.from) == dag.group(node);
    for (std::size_t device_class = 0; device_class < classes_; ++device_class) {
      Nanoseconds ready =
          later(end(dag, arc.from, device_class), dag.pause(arc.from, node, device_class));
      for (std::size_t from = 0; from < classes_ && !one_group; ++from) {
        if (!dag.apart(from, device_class)) continue;
        ready =
            std::min(ready, later(end(dag, arc.from, from), dag.crossing(arc, from, device_class)));
      }
      raise(node, device_class, ready);
    }
  }
}

struct NearAncestors::Ancestor {
  Nanoseconds apart = 0;  // when the target can start if this one runs elsewhere
  Nanoseconds start = 0;  // on the target's device
  Nanoseconds length = 0;
  Nanoseconds rest = 0;  // from its end to the target's start
};

NearAncestors::NearAncestors(const BoundDag& dag)
    : on_(dag.size()), off_(dag.size()), seen_(dag.size()), rank_(dag.size()) {
  EarliestStarts starts(dag);
  starts.propagate(dag);
  std::vector<Nanoseconds> earliest(dag.size());
  for (std::uint32_t node = 0; node < dag.size(); ++node) {
    earliest[node] = starts.earliest(dag, node);
  }
  std::vector<std::uint32_t> order(dag.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return earliest[a] < earliest[b]; });
  for (std::uint32_t i = 0; i < dag.size(); ++i) rank_[order[i]] = i;
}

NearAncestors::~NearAncestors() = default;

void NearAncestors::raise(const BoundDag& dag, EarliestStarts& starts, std::uint32_t node,
                          std::size_t most) {
  for (std::size_t device_class = 0; device_class < dag.num_classes(); ++device_class) {
    if (dag.duration(node, device_class) == kInfinite) continue;
    starts.raise(node, device_class, start_on(dag, starts, node, device_class, most));
  }
}

// The target's predecessors, or those of an ancestor in sight, come into sight.
void NearAncestors::look_back(const BoundDag& dag, std::uint32_t node, std::size_t device_class,
                              std::uint32_t target) {
  const auto later_rank = [&](std::uint32_t a, std::uint32_t b) { return rank_[a] < rank_[b]; };
  Nanoseconds rest_on = 0;
  Nanoseconds rest_off = kInfinite;
  if (node != target) {
    rest_on = later(dag.duration(node, device_class), on_[node]);
    if (dag.group(node) != dag.group(target)) {
      for (std::size_t other = 0; other < dag.num_classes(); ++other) {
        if (!dag.apart(other, device_class)) continue;
        rest_off = std::min(rest_off, later(dag.duration(node, other), off_[node]));
      }
    }
  }
  for (const BoundArc& arc : dag.before(node)) {
    Nanoseconds in = kInfinite;
    Nanoseconds out = kInfinite;
    for (std::size_t other = 0; other < dag.num_classes(); ++other) {
      if (dag.group(arc.from) == dag.group(node) || !dag.apart(other, device_class)) continue;
      in = std::min(in, dag.crossing(arc, other, device_class));
      out = std::min(out, dag.crossing(arc, device_class, other));
    }
    if (!seen_[arc.from]) {
      seen_[arc.from] = true;
      on_[arc.from] = off_[arc.from] = 0;
      touched_.push_back(arc.from);
      open_.push_back(arc.from);
      std::push_heap(open_.begin(), open_.end(), later_rank);
    }
    const Nanoseconds stay = later(dag.pause(arc.from, node, device_class), rest_on);
    on_[arc.from] = std::max(on_[arc.from], std::min(stay, later(out, rest_off)));
    off_[arc.from] = std::max(off_[arc.from], std::min(later(in, rest_on), rest_off));
  }
}

// The ancestors run one after another, and the target after them: for each, those that start no
// earlier, and those that have no less to wait for afterwards.
Nanoseconds NearAncestors::on_one_device(const BoundDag& dag, std::size_t device_class) {
  Nanoseconds best = 0;
  for (const bool by_start : {true, false}) {
    const auto key = [&](const Ancestor& ancestor) {
      return by_start ? ancestor.start : ancestor.rest;
    };
    std::sort(on_device_.begin(), on_device_.end(),
              [&](const Ancestor& a, const Ancestor& b) { return key(a) > key(b); });
    Nanoseconds work = -dag.gap(device_class);
    Nanoseconds least = kInfinite;
    for (const Ancestor& ancestor : on_device_) {
      work = later(work, later(ancestor.length, dag.gap(device_class)));
      least = std::min(least, by_start ? ancestor.rest : ancestor.start);
      best = std::max(best, later(later(key(ancestor), least), work));
    }
  }
  return best;
}

Nanoseconds NearAncestors::start_on(const BoundDag& dag, const EarliestStarts& starts,
                                    std::uint32_t node, std::size_t device_class,
                                    std::size_t most) {
  const auto later_rank = [&](std::uint32_t a, std::uint32_t b) { return rank_[a] < rank_[b]; };
  Nanoseconds best = starts.at(node, device_class);
  ancestors_.clear();
  look_back(dag, node, device_class, node);
  while (!open_.empty() && ancestors_.size() < most) {
    std::pop_heap(open_.begin(), open_.end(), later_rank);
    const std::uint32_t ancestor = open_.back();
    open_.pop_back();
    Nanoseconds apart = kInfinite;
    for (std::size_t other = 0; other < dag.num_classes(); ++other) {
      if (dag.group(ancestor) == dag.group(node) || !dag.apart(other, device_class)) continue;
      apart = std::min(apart, later(starts.end(dag, ancestor, other), off_[ancestor]));
    }
    // What is before it could come from elsewhere just as well.
    if (apart <= best) continue;
    ancestors_.push_back({apart, starts.at(ancestor, device_class),
                          dag.duration(ancestor, device_class), on_[ancestor]});
    look_back(dag, ancestor, device_class, node);
  }
  for (const std::uint32_t seen : touched_) seen_[seen] = false;
  touched_.clear();
  open_.clear();

  std::stable_sort(ancestors_.begin(), ancestors_.end(),
                   [](const Ancestor& a, const Ancestor& b) { return a.apart > b.apart; });
  on_device_.clear();
  for (const Ancestor& ancestor : ancestors_) {
    if (ancestor.apart <= best) break;
    if (ancestor.length == 0) continue;
    on_device_.push_back(ancestor);
    // Either one of them runs elsewhere, or none.
    best = std::max(best, std::min(ancestor.apart, on_one_device(dag, device_class)));
  }
  return best;
}

}  // namespace emplace
