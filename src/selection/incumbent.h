// The best choice and the best bound so far, shared by all that search.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "selection/assignment.h"
#include "selection/solve.h"

namespace emplace {

class SelectionIncumbent {
 public:
  SelectionIncumbent(const SelectionOptions& options, std::chrono::steady_clock::time_point began)
      : options_(options), began_(began) {}

  // Takes what is better than the best. A feasible one beats all that are not; of those the one
  // with fewer forbidden costs, then with less excess.
  bool offer(const Assignment& assignment);
  void raise_bound(std::int64_t bound);

  bool feasible() const { return feasible_.load(std::memory_order_relaxed); }
  std::int64_t cost() const { return cost_.load(std::memory_order_relaxed); }
  std::int64_t bound() const { return bound_.load(std::memory_order_relaxed); }
  std::vector<std::int32_t> choice() const;
  double first_feasible() const { return first_feasible_; }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  // The time is over, the caller has had enough, or the best is proven.
  bool done() const;
  bool proven() const { return feasible() && bound() >= cost(); }
  void set_nodes_left(std::int32_t nodes) { nodes_left_ = nodes; }

 private:
  void report();

  const SelectionOptions& options_;
  std::chrono::steady_clock::time_point began_;
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
