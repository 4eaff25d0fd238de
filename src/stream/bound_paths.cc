// States, step by step along the order of the units: for each open net (some members seen, some to
// come) whether the device holds none of the members so far, all, or some, in which case it pays
// already. Two bits each. A net's cost is added at the move at which it becomes certain, so that
// every content is a path from the first state to the last whose moves add up to its load and
// traffic: exact, as long as no net is eased.
//
// Where there are too many states, or more than 32 open nets, the cheapest open nets are forgotten
// (eased): the states that differ in them only become one, and what they would have cost later is
// not charged. Loads are then too low, never too high, which is what a bound may have. Moves that
// no content within the limit makes are dropped, forwards by the least load so far and backwards by
// the least to the end. O(states * nets of a unit) for each unit. Path decompositions: Bodlaender,
// "A tourist guide through treewidth", 1993.
#include "stream/bound_paths.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace emplace {
namespace {

// Two bits for each open net, in its slot.
using State = std::uint64_t;
constexpr State kNothing = 0;  // the device holds none of the members so far
constexpr State kAll = 1;      // it holds all of them
constexpr State kCharged = 2;  // some: it pays, whatever follows
constexpr State kMask = 3;
constexpr std::uint32_t kSlots = 32;
constexpr std::uint32_t kNoSlot = kSlots;
constexpr std::size_t kPeak = 16;  // a step may have this many times its share of the states
constexpr std::int64_t kFree = -1;

struct OpenNet {
  std::uint32_t net;
  bool opens;
  bool closes;
  std::uint32_t slot;  // kNoSlot: eased, or never open
};

struct RawMove {
  State to;
  PathMove move;
};

class PathFinder {
 public:
  PathFinder(const ContentGraph& graph, Nanoseconds limit, std::size_t max_states)
      : graph_(graph), limit_(limit), states_left_(max_states * graph.num_units()) {
    slot_of_.assign(graph.nets.size(), kNoSlot);
    seen_.assign(graph.nets.size(), 0);
    eased_.assign(graph.nets.size(), 0);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t net = 0; net < graph.nets.size(); ++net) {
      for (const std::uint32_t unit : graph.nets[net].units) pairs.emplace_back(unit, net);
    }
    nets_ = Csr<std::uint32_t>::from_pairs(graph.num_units(), pairs);
  }

  ContentPaths find();

 private:
  std::vector<OpenNet> open_nets(std::uint32_t unit);
  RawMove move(std::uint32_t from, std::uint32_t unit, bool holds,
               const std::vector<OpenNet>& nets) const;
  std::vector<RawMove> moves(std::uint32_t unit);
  void ease_to(std::size_t max_states, std::vector<RawMove>& moves);
  std::uint32_t cheapest_slot() const;
  PathStep take(std::uint32_t unit, const std::vector<RawMove>& moves);

  const ContentGraph& graph_;
  Nanoseconds limit_;
  std::size_t states_left_;
  Csr<std::uint32_t> nets_;
  std::vector<std::uint32_t> slot_of_;  // by net
  std::vector<std::size_t> seen_;       // by net: members so far
  std::vector<std::uint8_t> eased_;     // by net
  std::vector<std::int64_t> net_in_ = std::vector<std::int64_t>(kSlots, kFree);  // by slot
  std::vector<State> states_{0};                                                 // ascending
  std::vector<Nanoseconds> least_{0};                                            // load, by state
};

std::vector<OpenNet> PathFinder::open_nets(std::uint32_t unit) {
  std::vector<OpenNet> result;
  for (const std::uint32_t net : nets_[unit]) {
    const bool opens = seen_[net]++ == 0;
    const bool closes = seen_[net] == graph_.nets[net].units.size();
    if (opens && !closes) {
      const auto slot = std::find(net_in_.begin(), net_in_.end(), kFree);
      if (slot == net_in_.end()) {
        eased_[net] = 1;
      } else {
        *slot = net;
        slot_of_[net] = static_cast<std::uint32_t>(slot - net_in_.begin());
      }
    }
    result.push_back({net, opens, closes, slot_of_[net]});
  }
  return result;
}

RawMove PathFinder::move(std::uint32_t from, std::uint32_t unit, bool holds,
                         const std::vector<OpenNet>& nets) const {
  State state = states_[from];
  PathMove result{from, holds, holds ? graph_.time[unit] : 0, 0};
  for (const OpenNet& open : nets) {
    const ContentNet& net = graph_.nets[open.net];
    const bool lone = open.opens && open.closes;  // the other members are outside
    if (open.slot == kNoSlot && !lone) continue;
    State before = holds && !net.outside ? kAll : kNothing;
    if (!open.opens) before = (state >> (2 * open.slot)) & kMask;
    State after = before;
    if ((before == kNothing && holds) || (before == kAll && !holds)) {
      after = kCharged;
      result.load = std::min(kNever, result.load + net.weight);
      result.traffic = std::min(kNever, result.traffic + net.traffic);
    }
    if (lone) continue;
    state &= ~(kMask << (2 * open.slot));
    if (!open.closes) state |= after << (2 * open.slot);
  }
  return {state, result};
}

std::vector<RawMove> PathFinder::moves(std::uint32_t unit) {
  const std::vector<OpenNet> nets = open_nets(unit);
  std::vector<RawMove> result;
  for (std::uint32_t from = 0; from < states_.size(); ++from) {
    for (const bool holds : {false, true}) {
      const RawMove raw = move(from, unit, holds, nets);
      if (least_[from] + raw.move.load <= limit_) result.push_back(raw);
    }
  }
  for (const OpenNet& open : nets) {
    if (!open.closes || open.slot == kNoSlot) continue;
    net_in_[open.slot] = kFree;
    slot_of_[open.net] = kNoSlot;
  }
  return result;
}

std::uint32_t PathFinder::cheapest_slot() const {
  std::uint32_t cheapest = kNoSlot;
  std::pair<Nanoseconds, Nanoseconds> least{};
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    if (net_in_[slot] == kFree) continue;
    const ContentNet& net = graph_.nets[static_cast<std::size_t>(net_in_[slot])];
    const std::pair<Nanoseconds, Nanoseconds> cost{net.weight, net.traffic};
    if (cheapest != kNoSlot && cost >= least) continue;
    least = cost;
    cheapest = slot;
  }
  return cheapest;
}

// Sorts the moves by state, and forgets the cheapest open nets until the states are few enough.
void PathFinder::ease_to(std::size_t max_states, std::vector<RawMove>& moves) {
  const auto by_state = [](const RawMove& a, const RawMove& b) { return a.to < b.to; };
  for (;;) {
    std::stable_sort(moves.begin(), moves.end(), by_state);
    std::size_t states = 0;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      states += i == 0 || moves[i].to != moves[i - 1].to ? 1 : 0;
    }
    if (states <= max_states) return;
    const std::uint32_t slot = cheapest_slot();
    EMPLACE_CHECK(slot != kNoSlot);
    const auto net = static_cast<std::size_t>(net_in_[slot]);
    eased_[net] = 1;
    slot_of_[net] = kNoSlot;
    net_in_[slot] = kFree;
    for (RawMove& raw : moves) raw.to &= ~(kMask << (2 * slot));
  }
}

PathStep PathFinder::take(std::uint32_t unit, const std::vector<RawMove>& moves) {
  PathStep step{unit, {}};
  std::vector<State> states;
  std::vector<Nanoseconds> least;
  std::vector<PathMove> into;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Nanoseconds load = least_[moves[i].move.from] + moves[i].move.load;
    if (states.empty() || states.back() != moves[i].to) {
      states.push_back(moves[i].to);
      least.push_back(load);
    }
    least.back() = std::min(least.back(), load);
    into.push_back(moves[i].move);
    if (i + 1 == moves.size() || moves[i + 1].to != moves[i].to) {
      step.moves.push_back(into);
      into.clear();
    }
  }
  states_ = std::move(states);
  least_ = std::move(least);
  return step;
}

// Leaves out the states from which every way to the end is beyond the limit.
void drop_dead_ends(ContentPaths& paths, Nanoseconds limit) {
  // The least load from the start to each state, then from each state to the end.
  std::vector<std::vector<Nanoseconds>> reach{{0}};
  for (const PathStep& step : paths.steps) {
    std::vector<Nanoseconds> next(step.moves.size(), kNever);
    for (std::size_t state = 0; state < next.size(); ++state) {
      for (const PathMove& move : step.moves[state]) {
        next[state] = std::min(next[state], reach.back()[move.from] + move.load);
      }
    }
    reach.push_back(std::move(next));
  }
  std::vector<Nanoseconds> rest(reach.back().size(), 0);
  constexpr std::uint32_t kDropped = std::numeric_limits<std::uint32_t>::max();
  std::vector<Csr<PathMove>> kept(paths.steps.size());
  for (std::size_t i = paths.steps.size(); i-- > 0;) {
    std::vector<Nanoseconds> before(reach[i].size(), kNever);
    for (std::size_t state = 0; state < rest.size(); ++state) {
      std::vector<PathMove> into;
      for (const PathMove& move : paths.steps[i].moves[state]) {
        if (reach[i][move.from] + move.load + rest[state] > limit) continue;
        before[move.from] = std::min(before[move.from], move.load + rest[state]);
        into.push_back(move);
      }
      kept[i].push_back(into);
    }
    rest = std::move(before);
  }
  std::vector<std::uint32_t> number{0};
  paths.num_states = 0;
  for (std::size_t i = 0; i < paths.steps.size(); ++i) {
    Csr<PathMove> moves;
    std::vector<std::uint32_t> next;
    for (std::size_t state = 0; state < kept[i].size(); ++state) {
      std::vector<PathMove> into;
      for (PathMove move : kept[i][state]) {
        move.from = number[move.from];
        if (move.from != kDropped) into.push_back(move);
      }
      next.push_back(into.empty() ? kDropped : static_cast<std::uint32_t>(moves.size()));
      if (!into.empty()) moves.push_back(into);
    }
    number = std::move(next);
    paths.num_states += moves.size();
    paths.steps[i].moves = std::move(moves);
  }
}

ContentPaths PathFinder::find() {
  ContentPaths paths;
  const std::vector<std::uint32_t>& order = graph_.order;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::vector<RawMove> into = moves(order[i]);
    const std::size_t share = states_left_ / (order.size() - i);
    ease_to(std::clamp<std::size_t>(share * kPeak, 1, std::max<std::size_t>(1, states_left_)),
            into);
    paths.steps.push_back(take(order[i], into));
    states_left_ -= std::min(states_left_, states_.size());
  }
  drop_dead_ends(paths, limit_);
  for (const std::uint8_t eased : eased_) paths.nets_eased += eased;
  return paths;
}

}  // namespace

ContentPaths find_paths(const ContentGraph& graph, Nanoseconds limit, std::size_t max_states) {
  return PathFinder(graph, limit, max_states).find();
}

}  // namespace emplace
