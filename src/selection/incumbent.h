// The best choice and the best bound so far, shared by all that search.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include <emplace/search.h>

#include "selection/assignment.h"
#include "selection/solve.h"

namespace emplace {

class SelectionIncumbent {
 public:
  // The budget has a limit, of time or of evaluations.
  SelectionIncumbent(const Budget& budget, const SelectionOptions& options);

  // Takes what is better than the best. A feasible one beats all that are not; of those the one
  // with fewer forbidden costs, then with less excess.
  bool offer(const Assignment& assignment);
  void raise_bound(std::int64_t bound);

  bool feasible() const { return feasible_.load(std::memory_order_relaxed); }
  std::int64_t cost() const { return cost_.load(std::memory_order_relaxed); }
  std::int64_t bound() const { return bound_.load(std::memory_order_relaxed); }
  std::vector<std::int32_t> choice() const;
  double first_feasible() const { return first_feasible_; }

  void count_evaluation() { evaluations_.fetch_add(1, std::memory_order_relaxed); }
  std::int64_t evaluations() const { return evaluations_.load(std::memory_order_relaxed); }
  // How long the search has gone on and how long it may, for shares and rates: in seconds, or,
  // where evaluations are limited, in evaluations as if each took a millisecond, so that another
  // run decides the same.
  double elapsed() const;
  double limit() const { return limit_; }
  // The budget is spent, or the best is proven.
  bool done() const { return proven() || budget_.spent(evaluations()); }
  bool proven() const { return feasible() && bound() >= cost(); }
  void set_nodes_left(std::int32_t nodes) { nodes_left_ = nodes; }

 private:
  double seconds() const { return budget_.elapsed_seconds() - began_; }
  void report();

  const Budget budget_;
  const SelectionOptions& options_;
  const double began_;  // of the budget's seconds
  const double limit_;
  std::atomic<std::int64_t> evaluations_{0};
  mutable std::mutex mutex_;
  std::vector<std::int32_t> choice_;
  std::atomic<bool> feasible_{false};
  std::atomic<std::int64_t> cost_{kForbidden};
  std::atomic<std::int64_t> bound_{0};
  std::int32_t blocked_ = 0;
  double excess_ = 0;
  double first_feasible_ = -1;
  std::int32_t nodes_left_ = 0;
};

}  // namespace emplace
