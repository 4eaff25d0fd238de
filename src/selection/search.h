// The search on a reduced problem: one thread raises prices for a bound and for starts, the others
// walk from those, and so does the first when the prices have settled.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/rng.h"

#include "selection/cost_tables.h"
#include "selection/incumbent.h"
#include "selection/prices.h"
#include "selection/walk.h"

namespace emplace {

class SelectionSearch {
 public:
  SelectionSearch(const CostTables& tables, SelectionIncumbent& incumbent, bool bounds_hold)
      : tables_(tables), incumbent_(incumbent), bounds_hold_(bounds_hold), ascent_(tables) {}

  // To begin from, if it is any good.
  void set_start(std::vector<std::int32_t> choice);
  // Until the incumbent is done.
  void run(int threads, Rng rng);

 private:
  // Where a walk may begin, and how good that is as the prices see it.
  struct Start {
    double merit;
    std::vector<std::int32_t> choice;
  };

  void ascend_once();
  void ascend(double until);
  void consider(const PriceAscent& ascent);
  // Where the bound seems to meet the best cost.
  void certify(const PriceAscent& ascent);
  void walk(Rng rng, double episode);
  // The best, or one of the good ones; which prices go with it.
  std::vector<std::int32_t> best_start() const;
  std::vector<std::int32_t> some_start(Rng& rng) const;
  std::vector<double> prices() const;

  const CostTables& tables_;
  SelectionIncumbent& incumbent_;
  bool bounds_hold_;
  PriceAscent ascent_;
  mutable std::mutex mutex_;
  std::vector<Start> starts_;  // the best first
  std::vector<double> prices_;
  std::atomic<std::int64_t> version_{0};  // of the best start and the prices
  int near_proofs_ = 0;
  std::atomic<bool> settled_{false};  // the prices
};

}  // namespace emplace
