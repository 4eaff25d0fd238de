// Large-neighbourhood search: again and again the best choice for a part of the nodes, at prices
// for usage that follow the part's needs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

#include "selection/assignment.h"
#include "selection/incumbent.h"
#include "selection/region.h"

namespace emplace {

class SelectionWalk {
 public:
  SelectionWalk(const CostTables& tables, std::span<const double> prices,
                std::vector<std::int32_t> choice, SelectionIncumbent& incumbent, Rng rng);

  // One neighbourhood; where those have not helped for a while, a jump elsewhere, or back.
  void advance();
  // Takes new prices, and goes on from another choice if it looks better at them.
  void consider(std::span<const std::int32_t> choice, std::span<const double> prices);
  void restart(std::span<const std::int32_t> choice);
  const Assignment& current() const { return current_; }
  // Its cost, with what is wrong with it paid for.
  double merit() const { return merit(current_); }

 private:
  // A kind of neighbourhood: how many nodes, how large tables.
  struct Size {
    double nodes = 0;
    double table = 0;
    double gain = 1e-3;     // recent, as a share of the cost per second
    double seconds = 1e-3;  // that one takes
    double weight() const;
  };

  std::size_t pick_size();
  void pick_nodes(std::size_t count);
  void grow(std::size_t count);
  std::int32_t pick_centre();
  void price_region();
  bool try_region();
  bool raise_prices(const ChangeEffect& effect);
  double merit(const ChangeEffect& effect) const;
  double merit(const Assignment& assignment) const;
  void set_prices(std::span<const double> prices);
  void blur_prices();
  void step();
  void jump();
  void kick();

  const CostTables& tables_;
  SelectionIncumbent& incumbent_;
  Rng rng_;
  Assignment current_;
  Region region_;
  std::vector<double> prices_;
  double usual_price_ = 1;   // of the times that have one
  double excess_price_ = 1;  // for what is beyond the limit
  std::vector<Size> sizes_;
  std::vector<std::int32_t> nodes_;  // of the region
  std::vector<std::int64_t> seen_;   // the step in which a node was last taken
  std::vector<double> protection_;
  std::vector<double> local_;  // the region's prices
  std::vector<double> before_;
  std::vector<NodeChange> changes_;
  std::vector<std::vector<std::int32_t>> nodes_at_;  // with usage, by block of times
  std::int64_t steps_ = 0;
  std::int64_t stale_ = 0;
  // Where the last jump began.
  std::vector<std::int32_t> home_;
  double home_merit_ = 0;
  int soft_steps_ = 0;  // that may still exceed limits
  double blur_ = 0.6;   // how much prices are changed at random
  double cycle_began_ = 0;
  double cycle_ = 2;  // seconds
};

}  // namespace emplace
