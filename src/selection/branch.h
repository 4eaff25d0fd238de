// Depth-first search with bounds over all choices: exact, for the few nodes that reductions leave
// of small problems.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "selection/incumbent.h"
#include "selection/reduced_problem.h"

namespace emplace {

class BranchSearch {
 public:
  explicit BranchSearch(const CostTables& tables);

  // Looks at `steps` partial choices at most, in an order that depends on the problem alone; true
  // when nothing is left to look at. Offers what it finds. Ends when `stop` says so.
  bool run(std::int64_t steps, SelectionIncumbent& incumbent, const std::function<bool()>& stop);

 private:
  struct Saved {
    std::int32_t node;
    std::vector<std::int64_t> costs;
    std::int64_t least;
  };

  void order_nodes();
  void open(std::size_t depth);
  bool enter(std::int32_t node, std::int32_t strategy);
  void leave(std::int32_t node, std::int32_t strategy, std::size_t saved);
  bool fits(std::int32_t node, std::int32_t strategy) const;

  const CostTables& tables_;
  const ReducedProblem& problem_;
  std::vector<std::int32_t> order_;
  std::vector<std::int32_t> position_;
  std::vector<std::vector<std::int64_t>> costs_;  // with all that is chosen already
  std::vector<std::int64_t> least_;               // of each node's
  std::vector<std::int32_t> choice_;
  std::vector<std::int64_t> usage_;
  std::vector<Saved> saved_;
  std::int64_t bound_ = 0;
  std::int64_t best_ = kForbidden;
  std::int64_t steps_ = 0;
  SelectionIncumbent* incumbent_ = nullptr;
  std::function<bool()> stop_;
};

}  // namespace emplace
