#include "selection/incumbent.h"

#include <algorithm>
#include <tuple>

namespace emplace {
namespace {

constexpr double kSecondsPerEvaluation = 1e-3;

}  // namespace

SelectionIncumbent::SelectionIncumbent(const Budget& budget, const SelectionOptions& options)
    : budget_(budget),
      options_(options),
      began_(budget.elapsed_seconds()),
      limit_(budget.evaluations ? kSecondsPerEvaluation * static_cast<double>(*budget.evaluations)
                                : *budget.seconds - began_) {}

double SelectionIncumbent::elapsed() const {
  return budget_.evaluations ? kSecondsPerEvaluation * static_cast<double>(evaluations())
                             : seconds();
}

bool SelectionIncumbent::offer(const Assignment& assignment) {
  const bool fits = assignment.feasible();
  if (fits ? feasible() && assignment.cost() >= cost() : feasible()) return false;
  const std::lock_guard lock(mutex_);
  if (fits) {
    if (feasible() && assignment.cost() >= cost()) return false;
  } else {
    const auto quality = std::tuple(assignment.blocked(), assignment.excess());
    if (feasible() || (!choice_.empty() && quality >= std::tuple(blocked_, excess_))) return false;
    std::tie(blocked_, excess_) = quality;
  }
  choice_.assign(assignment.choice().begin(), assignment.choice().end());
  if (!fits) return true;
  cost_ = assignment.cost();
  if (!feasible()) first_feasible_ = seconds();
  feasible_ = true;
  report();
  return true;
}

void SelectionIncumbent::raise_bound(std::int64_t bound) {
  const std::lock_guard lock(mutex_);
  if (bound <= bound_) return;
  bound_ = bound;
  report();
}

std::vector<std::int32_t> SelectionIncumbent::choice() const {
  const std::lock_guard lock(mutex_);
  return choice_;
}

void SelectionIncumbent::report() {
  if (options_.progress == nullptr) return;
  options_.progress({seconds(), feasible(), cost(), std::min(bound(), cost()), nodes_left_});
}

}  // namespace emplace
