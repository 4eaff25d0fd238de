// Sequential tree-reweighted message passing (Kolmogorov, TPAMI 2006) with a price on usage at
// every time (Lagrangian relaxation of the limit). Gives lower bounds, prices, and choices that
// come close to both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "selection/cost_tables.h"

namespace emplace {

class Messages {
 public:
  explicit Messages(const CostTables& tables);

  // Prices for what is used at each time, 0 or more, in cost per unit.
  void set_prices(std::span<const double> prices);
  // One pass up and one down; returns a lower bound on the cost of every feasible choice.
  double pass();
  // The bound of the last pass, proven in integers; takes about as long as ten passes.
  std::int64_t certified_bound() const;
  // A choice made node by node, the messages standing in for what is not chosen yet.
  void decode(std::vector<std::int32_t>& choice) const;
  // What each strategy of a node costs as the messages tell, with the usage paid for.
  void belief(std::int32_t node, std::vector<double>& belief) const;

 private:
  void sweep_node(std::int32_t node, bool up, double* bound);
  double send(std::int32_t arc, std::int32_t node, double share);

  const CostTables& tables_;
  std::vector<double> priced_;      // cost and price of each strategy
  std::vector<std::size_t> first_;  // of the messages along each arc, to its end
  std::vector<double> messages_;
  std::vector<double> share_;  // of each node
  std::vector<double> belief_;
  std::vector<double> buffer_;
  std::vector<double> before_;
  double paid_back_ = 0;  // the prices of all that there is
};

}  // namespace emplace
