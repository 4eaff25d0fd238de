// Values of placements by group, many at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <emplace/simulate.h>

#include "placer/evaluator.h"

namespace emplace {

class GroupEvaluator {
 public:
  // The evaluator outlives it.
  explicit GroupEvaluator(Evaluator& evaluator);

  std::size_t num_groups() const { return num_groups_; }
  // Throws an Error that names the op when it is not valid.
  void expand(std::span<const std::int32_t> devices, Placement& placement) const;
  // Of placements that lie one after the other. Throws an Error that names the placement.
  void evaluate(std::span<const std::int32_t> devices, std::span<StepValue> values,
                int threads) const;

 private:
  const Problem& problem() const { return evaluator_.problem(); }
  [[noreturn]] void fail_at(std::size_t group, std::int32_t device) const;

  Evaluator& evaluator_;
  std::size_t num_groups_;
  std::size_t num_devices_;
  std::vector<std::uint8_t> allowed_;  // [group][device]
  bool all_linked_ = true;
};

}  // namespace emplace
