#include "stream/bound.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "bound/lower_bound.h"
#include "stream/bound_covering.h"

namespace emplace {
namespace {

// Beyond these a table would be too coarse to be worth its time.
constexpr std::uint32_t kMaxItems = 5'000;
constexpr std::size_t kMaxDescription = 50'000'000;  // items and nets, times devices
constexpr Nanoseconds kMuchLower = 32;               // a limit lower by this part of itself

bool small_enough(const StreamModel& model) {
  const std::size_t size = static_cast<std::size_t>(model.num_items()) + model.num_nets();
  return model.num_items() <= kMaxItems && size * model.num_devices() <= kMaxDescription;
}

}  // namespace

StreamBounder::StreamBounder(const StreamModel& model) : model_(model) {
  const LowerBound simple = period_lower_bound(model.problem());
  bound_ = {simple.step, simple.reason};
  possible_ = model.num_items() > 0 && small_enough(model);
}

StreamBounder::~StreamBounder() = default;

Nanoseconds StreamBounder::most(Nanoseconds upper) const {
  return std::min({upper, kNever / 2, model_.problem().horizon() + 1});
}

// Whether a covering for a lower limit, which has smaller tables and fewer units, is worth its
// beginning.
bool StreamBounder::outdated(Nanoseconds most) const {
  const Nanoseconds excess = limit_ + 1 - most;
  return excess > (exhausted_ ? (most - bound_.period) / 2 : most / kMuchLower);
}

bool StreamBounder::open(Nanoseconds upper) const {
  const Nanoseconds most = this->most(upper);
  if (!possible_ || nothing_fits_ || bound_.period >= most) return false;
  return !exhausted_ || outdated(most);
}

std::unique_ptr<StreamCovering> StreamBounder::make_covering(Nanoseconds limit, bool count_memory) {
  if (classes_.empty()) classes_ = find_device_classes(model_);
  return std::make_unique<StreamCovering>(model_, classes_, bound_.period, limit, count_memory,
                                          covering_.get());
}

void StreamBounder::use(std::unique_ptr<StreamCovering> next, Nanoseconds limit,
                        bool count_memory) {
  if (covering_ != nullptr) earlier_cells_ += covering_->cells();
  covering_ = std::move(next);
  limit_ = limit;
  with_memory_ = count_memory;
  exhausted_ = false;
}

void StreamBounder::take_bound() {
  if (covering_->lower() <= bound_.period) return;
  if (covering_->lower() > model_.problem().horizon()) {
    nothing_fits_ = true;
    return;
  }
  bound_ = {covering_->lower(), "covering by contents of devices"};
  const std::uint32_t eased = covering_->nets_eased();
  if (eased > 0) bound_.reason += fmt::format(", {} tensors not fully charged", eased);
}

// What is next when nothing more follows from the covering.
void StreamBounder::finish_covering() {
  if (bound_.period > limit_) {
    covering_ = nullptr;
    with_memory_ = false;
    return;
  }
  exhausted_ = true;
  if (with_memory_) return;
  auto next = make_covering(limit_, true);
  if (next->counts_memory()) use(std::move(next), limit_, true);
}

void StreamBounder::step(Nanoseconds upper, const Budget& budget) {
  const Nanoseconds most = this->most(upper);
  if (covering_ == nullptr || outdated(most)) {
    // A limit near the bound makes tables small; where it is too low, that is a bound too.
    const Nanoseconds limit = std::min(most - 1, 2 * bound_.period);
    use(make_covering(limit, with_memory_), limit, with_memory_);
    return;
  }
  covering_->forget_from(most);
  const bool more = covering_->step(budget, rounds_);
  take_bound();
  if (!more && !nothing_fits_ && !budget.spent(rounds_)) finish_covering();
}

std::int64_t StreamBounder::cells() const {
  return earlier_cells_ + (covering_ == nullptr ? 0 : covering_->cells());
}

}  // namespace emplace
