// Prices for usage at each time, raised where a limit is exceeded and lowered where it is not,
// along with messages that follow them.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "selection/assignment.h"
#include "selection/cost_tables.h"
#include "selection/messages.h"

namespace emplace {

// The mean of the prices above 0; 0 where there are none.
double usual_price(std::span<const double> prices);

class PriceAscent {
 public:
  explicit PriceAscent(const CostTables& tables);

  // One pass of messages and one step of the prices.
  void step();
  double bound() const { return best_bound_; }
  double last_bound() const { return last_bound_; }
  // Of the last step, proven in integers.
  std::int64_t certified_bound() const { return messages_.certified_bound(); }
  // The prices that gave the best bound.
  const std::vector<double>& best_prices() const { return best_prices_; }
  // The choice of the last step.
  const Assignment& decoded() const { return decoded_; }
  // Steps have become as short as they get.
  bool settled() const;
  // A feasible choice of this cost is known.
  void tell(double cost) { feasible_cost_ = std::min(feasible_cost_, cost); }

 private:
  void move_prices();

  const CostTables& tables_;
  Messages messages_;
  Assignment decoded_;
  std::vector<std::int32_t> choice_;
  std::vector<double> prices_;
  std::vector<double> best_prices_;
  std::vector<double> mean_usage_;
  double best_bound_;
  double last_bound_ = 0;
  double feasible_cost_ = std::numeric_limits<double>::infinity();
  double share_ = 0.5;  // of Polyak's step
  int steps_ = 0;
  int since_best_ = 0;
};

}  // namespace emplace
