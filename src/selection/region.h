// The best choice for some of the nodes while all others stay as they are, usage paid for by
// prices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "selection/assignment.h"
#include "selection/cost_tables.h"
#include "selection/elimination.h"

namespace emplace {

class Region {
 public:
  explicit Region(const CostTables& tables);

  // The nodes to choose for, each once; where tables would be too large some stay as they are,
  // those with little protection first.
  void select(std::span<const std::int32_t> nodes, std::span<const std::int32_t> choice,
              const EliminationOrder::Limits& limits, std::span<const double> protection);
  // The best choice at prices whose sums before each time are given; what differs from the choice
  // as it was when the nodes were selected. `extra` is added to the costs (as many as all
  // strategies), if there is any.
  void solve(std::span<const double> before, std::span<const double> extra,
             std::vector<NodeChange>& changes);
  double work() const { return order_.work(); }
  std::size_t num_fixed() const { return order_.fixed().size(); }

 private:
  void add_terms(std::span<const std::int32_t> choice);

  const CostTables& tables_;
  std::vector<std::int32_t> local_;  // of each node, its number here or -1
  std::vector<std::int32_t> nodes_;
  std::vector<std::int32_t> sizes_;
  std::vector<std::int32_t> current_;
  std::vector<std::int32_t> values_;
  std::vector<double> costs_;  // of all strategies, with fixed neighbours
  std::vector<double> priced_;
  std::vector<std::size_t> first_;
  std::vector<const double*> unary_;
  std::vector<Elimination<double>::Term> terms_;
  std::vector<EliminationOrder::Pair> pairs_;
  EliminationOrder order_;
  Elimination<double> elimination_;
};

}  // namespace emplace
