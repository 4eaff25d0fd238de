// The tables of the covering bound have a state for every way in which the open nets can be held,
// about 2 to the number of open nets at each unit, so the order of the units decides how large they
// are. The least such sum is a kind of minimum cut linear arrangement, which is NP-hard: this is a
// beam search, from several first units, with wider and wider beams while that pays. Any order is a
// correct one.
//
// Two beginnings with the same set of units differ in nothing that follows; they are recognised by
// the xor of random numbers of their units, where a collision would lose a beginning and nothing
// else. O(units * width * frontier * log), and at most 100,000 units times width. Ours; beam search
// is Lowerre's (1976).
#include "stream/bound_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/csr.h"
#include "base/rng.h"

namespace emplace {
namespace {

constexpr std::uint32_t kMaxForBeam = 5000;  // units; an order is quadratic at worst
constexpr std::uint32_t kStarts = 12;
constexpr std::size_t kMostWidth = 64;
constexpr std::size_t kWider = 8;
constexpr std::size_t kMostOrderEffort = 100'000;  // units times width
constexpr double kFewStates = 64;  // at each unit: better orders would not make much difference

class Orders {
 public:
  explicit Orders(const ContentGraph& graph) : graph_(graph) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t net = 0; net < graph.nets.size(); ++net) {
      for (const std::uint32_t unit : graph.nets[net].units) pairs.emplace_back(unit, net);
    }
    nets_ = Csr<std::uint32_t>::from_pairs(graph.num_units(), pairs);
    for (std::uint32_t unit = 0; unit < graph.num_units(); ++unit) {
      signatures_.push_back(Rng(unit).next());
    }
  }

  // About the number of states: two per open net.
  double cost(const std::vector<std::uint32_t>& order) const {
    std::vector<std::uint32_t> seen(graph_.nets.size(), 0);
    int open = 0;
    double sum = 0;
    for (const std::uint32_t unit : order) {
      open += opened(unit, seen);
      for (const std::uint32_t net : nets_[unit]) ++seen[net];
      sum += std::exp2(std::min(open, 60));
    }
    return sum;
  }

  // Beam search (Lowerre 1976): of all orders of one more unit, the `width` with the fewest states
  // go on. Units of open nets come first.
  std::vector<std::uint32_t> beam(const std::vector<std::uint32_t>& starts,
                                  std::size_t width) const {
    std::vector<Prefix> prefixes(1);
    prefixes[0].seen.assign(graph_.nets.size(), 0);
    prefixes[0].placed.assign(graph_.num_units(), 0);
    prefixes[0].frontier = starts;
    std::vector<Step> steps;
    while (true) {
      std::vector<Extension> extensions = extend(prefixes, width);
      if (extensions.empty()) break;
      std::vector<Prefix> next;
      for (const Extension& extension : extensions)
        next.push_back(take(prefixes, extension, steps));
      prefixes = std::move(next);
    }
    std::vector<std::uint32_t> order;
    for (std::uint32_t step = prefixes[0].last; step != kNoStep; step = steps[step].before) {
      order.push_back(steps[step].unit);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  static constexpr std::uint32_t kNoStep = std::numeric_limits<std::uint32_t>::max();

  struct Step {
    std::uint32_t unit;
    std::uint32_t before;  // the step before it
  };
  // The beginning of an order.
  struct Prefix {
    double cost = 0;
    int open = 0;                 // nets
    std::uint64_t signature = 0;  // of the set of its units
    std::uint32_t last = kNoStep;
    std::uint32_t next_unplaced = 0;
    std::vector<std::uint32_t> seen;      // by net: members so far
    std::vector<std::uint8_t> placed;     // by unit
    std::vector<std::uint32_t> frontier;  // units that may come next
  };
  struct Extension {
    double cost;
    std::size_t missing;  // nets about to close come first
    std::uint64_t signature;
    std::size_t prefix;
    std::uint32_t unit;
    int open;
  };

  std::vector<Extension> extend(const std::vector<Prefix>& prefixes, std::size_t width) const {
    std::vector<Extension> all;
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      const Prefix& prefix = prefixes[i];
      for (const std::uint32_t unit : prefix.frontier) {
        const int open = prefix.open + opened(unit, prefix.seen);
        all.push_back({prefix.cost + std::exp2(std::min(open, 60)), missing(unit, prefix.seen),
                       prefix.signature ^ signatures_[unit], i, unit, open});
      }
    }
    const auto key = [](const Extension& one) {
      return std::tuple(one.cost, one.missing, one.signature, one.prefix, one.unit);
    };
    std::sort(all.begin(), all.end(),
              [&](const Extension& a, const Extension& b) { return key(a) < key(b); });
    // Orders of the same units differ in nothing that follows.
    std::set<std::uint64_t> known;
    std::erase_if(all, [&](const Extension& one) {
      return known.size() >= width || !known.insert(one.signature).second;
    });
    return all;
  }

  Prefix take(const std::vector<Prefix>& prefixes, const Extension& extension,
              std::vector<Step>& steps) const {
    Prefix result = prefixes[extension.prefix];
    result.cost = extension.cost;
    result.open = extension.open;
    result.signature = extension.signature;
    steps.push_back({extension.unit, result.last});
    result.last = static_cast<std::uint32_t>(steps.size() - 1);
    if (steps.back().before == kNoStep) result.frontier.clear();  // of the other starts
    result.placed[extension.unit] = 1;
    std::erase(result.frontier, extension.unit);
    for (const std::uint32_t net : nets_[extension.unit]) {
      if (result.seen[net]++ > 0) continue;
      for (const std::uint32_t unit : graph_.nets[net].units) {
        if (result.placed[unit] == 0) result.frontier.push_back(unit);
      }
    }
    std::sort(result.frontier.begin(), result.frontier.end());
    result.frontier.erase(std::unique(result.frontier.begin(), result.frontier.end()),
                          result.frontier.end());
    while (result.frontier.empty() && result.next_unplaced < graph_.num_units()) {
      if (result.placed[result.next_unplaced] == 0) result.frontier = {result.next_unplaced};
      ++result.next_unplaced;
    }
    return result;
  }

  // How many more nets are open after the unit.
  int opened(std::uint32_t unit, const std::vector<std::uint32_t>& seen) const {
    int change = 0;
    for (const std::uint32_t net : nets_[unit]) {
      const std::size_t size = graph_.nets[net].units.size();
      if (size == 1) continue;
      if (seen[net] == 0) ++change;
      if (seen[net] + 1 == size) --change;
    }
    return change;
  }

  // How many members the fullest of its open nets lacks: nets about to close come first.
  std::size_t missing(std::uint32_t unit, const std::vector<std::uint32_t>& seen) const {
    std::size_t least = graph_.num_units();
    for (const std::uint32_t net : nets_[unit]) {
      if (seen[net] > 0) least = std::min(least, graph_.nets[net].units.size() - seen[net]);
    }
    return least;
  }

  const ContentGraph& graph_;
  Csr<std::uint32_t> nets_;                // by unit
  std::vector<std::uint64_t> signatures_;  // by unit: random
};

}  // namespace

std::vector<std::uint32_t> order_units(const ContentGraph& graph) {
  std::vector<std::uint32_t> best(graph.num_units());
  std::iota(best.begin(), best.end(), 0U);
  if (graph.num_units() > kMaxForBeam || graph.nets.empty()) return best;
  const Orders orders(graph);
  std::vector<std::uint32_t> starts;
  for (std::uint32_t i = 0; i < std::min(kStarts, graph.num_units()); ++i) {
    starts.push_back(i * (graph.num_units() - 1) / std::max(1U, kStarts - 1));
  }
  double least = orders.cost(best);
  const std::size_t most_width = std::min(kMostWidth, kMostOrderEffort / graph.num_units());
  for (std::size_t width = 1; width <= most_width; width *= kWider) {
    std::vector<std::uint32_t> order = orders.beam(starts, width);
    const double cost = orders.cost(order);
    if (cost < least) {
      least = cost;
      best = std::move(order);
    }
    if (least <= kFewStates * graph.num_units()) break;
  }
  return best;
}

}  // namespace emplace
