// Values of placements by group, many at a time.
//
// Placements that lie close to each other, as those that a local search asks about do, are valued
// by what changes between them (sim/incremental.h), with the same results.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <emplace/simulate.h>

#include "placer/evaluator.h"

namespace emplace {

class GroupEvaluator {
 public:
  // The evaluator outlives it.
  explicit GroupEvaluator(Evaluator& evaluator);
  ~GroupEvaluator();

  std::size_t num_groups() const { return num_groups_; }
  // Throws an Error that names the op when it is not valid.
  void expand(std::span<const std::int32_t> devices, Placement& placement) const;
  // Of placements that lie one after the other. Throws an Error that names the placement.
  void evaluate(std::span<const std::int32_t> devices, std::span<StepValue> values,
                int threads) const;

 private:
  using Row = std::span<const std::int32_t>;
  // What moves are made to.
  struct Base;

  const Problem& problem() const { return evaluator_.problem(); }
  bool allowed(Row row) const;
  [[noreturn]] void fail_in(Row row) const;
  void fill(Row row, Placement& placement) const;
  void evaluate_part(Row rows, std::size_t first, std::span<StepValue> values) const;
  // The base that so many of the rows are close to that it pays; else nothing.
  std::unique_ptr<Base> base_for(Row rows, std::size_t count) const;
  void give_back(std::unique_ptr<Base> base) const;

  Evaluator& evaluator_;
  std::size_t num_groups_;
  std::size_t num_devices_;
  std::vector<std::uint8_t> allowed_;  // [group][device]
  bool all_linked_ = true;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Base>> idle_;
};

}  // namespace emplace
