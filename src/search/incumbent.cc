#include "search/incumbent.h"

namespace emplace {

bool Incumbent::offer(Solution solution) {
  const std::lock_guard lock(mutex_);
  if (best_ && !(solution.value < best_->value)) return false;
  best_ = std::move(solution);
  if (listener_) listener_(*this);
  return true;
}

void Incumbent::raise(const LowerBound& bound) {
  const std::lock_guard lock(mutex_);
  if (bound.step <= bound_.step) return;
  bound_ = bound;
  if (listener_) listener_(*this);
}

std::optional<Solution> Incumbent::best() const {
  const std::lock_guard lock(mutex_);
  return best_;
}

std::optional<Evaluation> Incumbent::value() const {
  const std::lock_guard lock(mutex_);
  if (!best_) return std::nullopt;
  return best_->value;
}

LowerBound Incumbent::bound() const {
  const std::lock_guard lock(mutex_);
  return bound_;
}

bool Incumbent::optimal() const {
  const std::lock_guard lock(mutex_);
  return best_ && best_->value.fits() && best_->value.step <= bound_.step;
}

}  // namespace emplace
