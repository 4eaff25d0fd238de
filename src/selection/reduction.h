// Everything about a selection problem that can be decided before searching, without losing its
// optimum.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "selection/reduced_problem.h"
#include "selection/reduction_graph.h"
#include "selection/selection_problem.h"

namespace emplace {

struct ReductionOptions {
  bool dominance = true;
  bool contraction = true;
  bool peeling = true;
  // What a rule may spend in all, in table entries looked at.
  std::int64_t work = 3'000'000'000;
  // Asked again and again; once it says so, what is left is left as it is.
  std::function<bool()> stop = nullptr;
};

class Reduction {
 public:
  explicit Reduction(const SelectionProblem& problem, const ReductionOptions& options = {});

  const ReducedProblem& problem() const { return reduced_; }
  // A strategy for each node of the problem from one for each node that is left.
  std::vector<std::int32_t> restore(std::span<const std::int32_t> choice) const;
  // The other way, where `strategies` can be said by what is left; otherwise what comes close.
  std::vector<std::int32_t> project(std::span<const std::int32_t> strategies) const;
  // Whether bounds on what is left are bounds on the whole.
  bool exact() const { return !graph_.rounded(); }

 private:
  ReductionGraph graph_;
  ReducedProblem reduced_;
  std::vector<std::int32_t> numbers_;  // in graph_, of each node that is left
};

}  // namespace emplace
