#include "placers/stream/bound_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/csr.h"

namespace emplace {
namespace {

constexpr std::uint32_t kMaxForGreedy = 4000;  // units; each greedy order is quadratic at worst
constexpr std::uint32_t kStarts = 12;

class Orders {
 public:
  explicit Orders(const ContentGraph& graph) : graph_(graph) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t net = 0; net < graph.nets.size(); ++net) {
      for (const std::uint32_t unit : graph.nets[net].units) pairs.emplace_back(unit, net);
    }
    nets_ = Csr<std::uint32_t>::from_pairs(graph.num_units(), pairs);
  }

  // About the number of states: two per open net.
  double cost(const std::vector<std::uint32_t>& order) const {
    std::vector<std::size_t> seen(graph_.nets.size(), 0);
    int open = 0;
    double sum = 0;
    for (const std::uint32_t unit : order) {
      open += opened(unit, seen);
      for (const std::uint32_t net : nets_[unit]) ++seen[net];
      sum += std::exp2(std::min(open, 60));
    }
    return sum;
  }

  // Next is always the unit that leaves the fewest nets open, among those of the open nets.
  std::vector<std::uint32_t> greedy(std::uint32_t start) const {
    std::vector<std::size_t> seen(graph_.nets.size(), 0);
    std::vector<std::uint8_t> placed(graph_.num_units(), 0);
    std::vector<std::uint32_t> order;
    std::set<std::uint32_t> frontier{start};
    std::uint32_t next_unplaced = 0;
    while (order.size() < graph_.num_units()) {
      if (frontier.empty()) {
        while (placed[next_unplaced] != 0) ++next_unplaced;
        frontier.insert(next_unplaced);
      }
      const std::uint32_t best = best_of(frontier, seen);
      frontier.erase(best);
      placed[best] = 1;
      order.push_back(best);
      for (const std::uint32_t net : nets_[best]) {
        if (seen[net]++ > 0) continue;
        for (const std::uint32_t unit : graph_.nets[net].units) {
          if (placed[unit] == 0) frontier.insert(unit);
        }
      }
    }
    return order;
  }

 private:
  std::uint32_t best_of(const std::set<std::uint32_t>& frontier,
                        const std::vector<std::size_t>& seen) const {
    std::uint32_t best = *frontier.begin();
    std::pair<int, std::size_t> least{std::numeric_limits<int>::max(), 0};
    for (const std::uint32_t unit : frontier) {
      const std::pair<int, std::size_t> key{opened(unit, seen), missing(unit, seen)};
      if (key >= least) continue;
      least = key;
      best = unit;
    }
    return best;
  }

  // How many more nets are open after the unit.
  int opened(std::uint32_t unit, const std::vector<std::size_t>& seen) const {
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
  std::size_t missing(std::uint32_t unit, const std::vector<std::size_t>& seen) const {
    std::size_t least = graph_.num_units();
    for (const std::uint32_t net : nets_[unit]) {
      if (seen[net] > 0) least = std::min(least, graph_.nets[net].units.size() - seen[net]);
    }
    return least;
  }

  const ContentGraph& graph_;
  Csr<std::uint32_t> nets_;  // by unit
};

}  // namespace

std::vector<std::uint32_t> order_units(const ContentGraph& graph) {
  std::vector<std::uint32_t> best(graph.num_units());
  std::iota(best.begin(), best.end(), 0U);
  if (graph.num_units() > kMaxForGreedy || graph.nets.empty()) return best;
  const Orders orders(graph);
  double least = orders.cost(best);
  const std::uint32_t starts = std::min(kStarts, graph.num_units());
  for (std::uint32_t i = 0; i < starts; ++i) {
    const std::uint32_t start = i * (graph.num_units() - 1) / std::max(1U, starts - 1);
    std::vector<std::uint32_t> order = orders.greedy(start);
    const double cost = orders.cost(order);
    if (cost >= least) continue;
    least = cost;
    best = std::move(order);
  }
  return best;
}

}  // namespace emplace
