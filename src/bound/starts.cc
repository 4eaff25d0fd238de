// Starts along paths with transfers, and the argument of Papadimitriou and Yannakakis ("Towards an
// architecture-independent analysis of parallel algorithms", SIAM J. Computing 19(2), 1990) for
// ops that exist once: if op v starts before time e, every ancestor whose result could not arrive
// from elsewhere by e runs on v's device, and so they run there one after another.
#include "bound/starts.h"

#include <algorithm>
#include <numeric>

namespace emplace {

Nanoseconds EarliestStarts::earliest(const BoundDag& dag, std::uint32_t node) const {
  Nanoseconds best = kNever;
  for (std::size_t kind = 0; kind < classes_; ++kind) {
    if (dag.duration(node, kind) != kNever) best = std::min(best, at(node, kind));
  }
  return best;
}

void EarliestStarts::propagate(const BoundDag& dag, std::uint32_t node) {
  for (const BoundArc& arc : dag.before(node)) {
    const bool one_group = dag.group(arc.from) == dag.group(node);
    for (std::size_t kind = 0; kind < classes_; ++kind) {
      Nanoseconds ready = later(end(dag, arc.from, kind), dag.pause(arc.from, node, kind));
      for (std::size_t from = 0; from < classes_ && !one_group; ++from) {
        if (!dag.apart(from, kind)) continue;
        ready = std::min(ready, later(end(dag, arc.from, from), dag.crossing(arc, from, kind)));
      }
      raise(node, kind, ready);
    }
  }
}

struct Neighbourhood::Mate {
  Nanoseconds apart = 0;  // when the target can start if this one runs elsewhere
  Nanoseconds start = 0;  // on the target's device
  Nanoseconds length = 0;
  Nanoseconds rest = 0;  // from its end to the target's start
};

Neighbourhood::Neighbourhood(const BoundDag& dag)
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

Neighbourhood::~Neighbourhood() = default;

void Neighbourhood::raise(const BoundDag& dag, EarliestStarts& starts, std::uint32_t node,
                          std::size_t most) {
  for (std::size_t kind = 0; kind < dag.num_classes(); ++kind) {
    if (dag.duration(node, kind) == kNever) continue;
    starts.raise(node, kind, start_on(dag, starts, node, kind, most));
  }
}

// The target's predecessors, or those of an ancestor in sight, come into sight.
void Neighbourhood::look_back(const BoundDag& dag, std::uint32_t node, std::size_t kind,
                              std::uint32_t target) {
  const auto later_rank = [&](std::uint32_t a, std::uint32_t b) { return rank_[a] < rank_[b]; };
  Nanoseconds rest_on = 0;
  Nanoseconds rest_off = kNever;
  if (node != target) {
    rest_on = later(dag.duration(node, kind), on_[node]);
    if (dag.group(node) != dag.group(target)) {
      for (std::size_t other = 0; other < dag.num_classes(); ++other) {
        if (!dag.apart(other, kind)) continue;
        rest_off = std::min(rest_off, later(dag.duration(node, other), off_[node]));
      }
    }
  }
  for (const BoundArc& arc : dag.before(node)) {
    Nanoseconds in = kNever;
    Nanoseconds out = kNever;
    for (std::size_t other = 0; other < dag.num_classes(); ++other) {
      if (dag.group(arc.from) == dag.group(node) || !dag.apart(other, kind)) continue;
      in = std::min(in, dag.crossing(arc, other, kind));
      out = std::min(out, dag.crossing(arc, kind, other));
    }
    if (!seen_[arc.from]) {
      seen_[arc.from] = true;
      on_[arc.from] = off_[arc.from] = 0;
      touched_.push_back(arc.from);
      open_.push_back(arc.from);
      std::push_heap(open_.begin(), open_.end(), later_rank);
    }
    const Nanoseconds stay = later(dag.pause(arc.from, node, kind), rest_on);
    on_[arc.from] = std::max(on_[arc.from], std::min(stay, later(out, rest_off)));
    off_[arc.from] = std::max(off_[arc.from], std::min(later(in, rest_on), rest_off));
  }
}

// The mates run one after another, the target after them: for each, those that start no earlier,
// and those that have no less to wait for afterwards.
Nanoseconds Neighbourhood::on_one_device(const BoundDag& dag, std::size_t kind) {
  Nanoseconds best = 0;
  for (const bool by_start : {true, false}) {
    const auto key = [&](const Mate& mate) { return by_start ? mate.start : mate.rest; };
    std::sort(together_.begin(), together_.end(),
              [&](const Mate& a, const Mate& b) { return key(a) > key(b); });
    Nanoseconds work = -dag.gap(kind);
    Nanoseconds least = kNever;
    for (const Mate& mate : together_) {
      work = later(work, later(mate.length, dag.gap(kind)));
      least = std::min(least, by_start ? mate.rest : mate.start);
      best = std::max(best, later(later(key(mate), least), work));
    }
  }
  return best;
}

Nanoseconds Neighbourhood::start_on(const BoundDag& dag, const EarliestStarts& starts,
                                    std::uint32_t node, std::size_t kind, std::size_t most) {
  const auto later_rank = [&](std::uint32_t a, std::uint32_t b) { return rank_[a] < rank_[b]; };
  Nanoseconds best = starts.at(node, kind);
  mates_.clear();
  look_back(dag, node, kind, node);
  while (!open_.empty() && mates_.size() < most) {
    std::pop_heap(open_.begin(), open_.end(), later_rank);
    const std::uint32_t mate = open_.back();
    open_.pop_back();
    Nanoseconds apart = kNever;
    for (std::size_t other = 0; other < dag.num_classes(); ++other) {
      if (dag.group(mate) == dag.group(node) || !dag.apart(other, kind)) continue;
      apart = std::min(apart, later(starts.end(dag, mate, other), off_[mate]));
    }
    // What is before it could come from elsewhere just as well.
    if (apart <= best) continue;
    mates_.push_back({apart, starts.at(mate, kind), dag.duration(mate, kind), on_[mate]});
    look_back(dag, mate, kind, node);
  }
  for (const std::uint32_t seen : touched_) seen_[seen] = false;
  touched_.clear();
  open_.clear();

  std::stable_sort(mates_.begin(), mates_.end(),
                   [](const Mate& a, const Mate& b) { return a.apart > b.apart; });
  together_.clear();
  for (const Mate& mate : mates_) {
    if (mate.apart <= best) break;
    if (mate.length == 0) continue;
    together_.push_back(mate);
    // Either one of them runs elsewhere, or none.
    best = std::max(best, std::min(mate.apart, on_one_device(dag, kind)));
  }
  return best;
}

}  // namespace emplace
