// The best answer that a search has found so far, and what it has proven: shared by its threads,
// open to answers from outside while it runs, and what is left when it is stopped.
//
// `Solution` has a `value` that is ordered (better is less) and knows `fits()` and `step`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <emplace/search.h>

namespace emplace {

template <class Solution>
class BasicIncumbent {
 public:
  using Value = decltype(Solution::value);
  // Called, from one thread at a time, after each improvement of the solution or the bound.
  using Listener = std::function<void(const BasicIncumbent&)>;

  // Listeners are called in the order in which they came, until the incumbent is gone or the handle
  // that `listen` returned is dropped, whichever comes first.
  using Subscription = std::shared_ptr<const Listener>;
  [[nodiscard]] Subscription listen(Listener listener) {
    const std::lock_guard lock(mutex_);
    auto kept = std::make_shared<const Listener>(std::move(listener));
    listeners_.push_back(kept);
    return kept;
  }

  // Keeps the solution if it is better than what there is; whether it was kept. Anyone may call
  // this at any time: where the threads of a search meet, it goes on from what was handed in, if
  // that is better than what it has.
  bool offer(Solution solution) {
    const std::lock_guard lock(mutex_);
    if (best_ && !(solution.value < best_->value)) return false;
    best_ = std::move(solution);
    if (refutes(heard_)) heard_ = {};
    version_.fetch_add(1, std::memory_order_release);
    tell();
    return true;
  }

  // Keeps the bound if it is higher.
  void raise(const LowerBound& bound) {
    const std::lock_guard lock(mutex_);
    if (bound.step <= bound_.step) return;
    bound_ = bound;
    tell();
  }

  // The same of a bound that others say they have proven, until an answer refutes it.
  void hear(const LowerBound& bound) {
    const std::lock_guard lock(mutex_);
    if (bound.step <= std::max(bound_.step, heard_.step) || refutes(bound)) return;
    heard_ = bound;
    tell();
  }

  // How often the best was replaced: cheap to ask, and another number whenever `best` is another.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // Thread-safe copies.
  std::optional<Solution> best() const {
    const std::lock_guard lock(mutex_);
    return best_;
  }
  std::optional<Value> value() const {
    const std::lock_guard lock(mutex_);
    if (!best_) return std::nullopt;
    return best_->value;
  }
  LowerBound bound() const {
    const std::lock_guard lock(mutex_);
    return heard_.step > bound_.step ? heard_ : bound_;
  }
  // Fits and is no higher than the bound.
  bool optimal() const {
    const std::lock_guard lock(mutex_);
    return best_ && best_->value.fits() && best_->value.step <= std::max(bound_.step, heard_.step);
  }

 private:
  bool refutes(const LowerBound& bound) const {
    return best_ && best_->value.fits() && best_->value.step < bound.step;
  }
  void tell() {
    std::erase_if(listeners_, [](const auto& listener) { return listener.expired(); });
    // A listener may add others; they hear of the next improvement.
    const auto now = listeners_;
    for (const auto& weak : now) {
      if (const Subscription listener = weak.lock()) (*listener)(*this);
    }
  }

  mutable std::recursive_mutex mutex_;  // a listener may look at what it is told of
  std::optional<Solution> best_;
  LowerBound bound_;
  LowerBound heard_;
  std::atomic<std::uint64_t> version_{0};
  std::vector<std::weak_ptr<const Listener>> listeners_;
};

}  // namespace emplace
