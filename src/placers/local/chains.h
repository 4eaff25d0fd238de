// Several walks side by side, each on a thread of its own where there are enough. They take turns
// of a fixed length and see each other's best only between turns, so that the number of threads
// changes nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <emplace/search.h>

#include "placer/context.h"
#include "placer/placer.h"

#include "placers/common/coarse_graph.h"

namespace emplace {

struct Turn {
  std::int64_t evaluations = 0;    // at most, at least 1
  double progress = 0;             // how much of the budget was spent when the turn began, 0 to 1
  const Solution* best = nullptr;  // of all chains, when the turn began
  const Budget* clock = nullptr;   // a chain stops when it is spent, whatever its evaluations
};

class Chain {
 public:
  virtual ~Chain() = default;

  // Goes on from where it stopped, counting what it evaluates with the context.
  virtual void advance(const Turn& turn) = 0;
  // Whether it will not go on.
  virtual bool finished() const = 0;
  // The best that it has seen; nothing before its first turn.
  virtual const Solution* best() const = 0;
};

// Until the budget is spent, the incumbent is proven optimal, or all chains have finished. The
// incumbent must have a solution, and hears of all that is better.
void run_chains(const std::vector<std::unique_ptr<Chain>>& chains, PlaceContext& context,
                const Budget& budget);

// The rest of a search when its starts are known: makes `count` chains, each by `make` from the
// problem's graph and its number, runs them, and returns the incumbent's best.
using MakeChain = std::function<std::unique_ptr<Chain>(const CoarseGraph& graph, std::size_t i)>;
PlaceResult search_by_chains(PlaceContext& context, const Budget& budget, std::size_t count,
                             const MakeChain& make);

// As many as wanted, unless the graph is so large that their memory would be too.
std::size_t chain_count(const Problem& problem, std::int64_t wanted);

}  // namespace emplace
