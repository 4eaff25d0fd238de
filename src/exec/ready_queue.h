// The ops of one device that could start now.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <utility>
#include <vector>

#include "base/ids.h"

#include "exec/spin.h"

namespace emplace::exec {

class ReadyQueue {
 public:
  using Place = std::int64_t;  // the least goes first; then the op's number

  void push(Place place, OpId op) {
    {
      const std::lock_guard lock(lock_);
      ops_.emplace(place, op);
    }
    size_.fetch_add(1, std::memory_order_release);
  }
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }
  // There is one: only the device itself takes them out.
  OpId pop() {
    const std::lock_guard lock(lock_);
    const OpId op = ops_.top().second;
    ops_.pop();
    size_.fetch_sub(1, std::memory_order_relaxed);
    return op;
  }
  void clear() {
    const std::lock_guard lock(lock_);
    ops_ = {};
    size_ = 0;
  }

 private:
  SpinLock lock_;
  std::priority_queue<std::pair<Place, OpId>, std::vector<std::pair<Place, OpId>>, std::greater<>>
      ops_;
  std::atomic<int> size_{0};
};

}  // namespace emplace::exec
