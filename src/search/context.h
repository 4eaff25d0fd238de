// What every search has beside its problem: answers to begin from, and an incumbent to put what it
// finds into. It lives as long as the search; budgets and random numbers, of which parts of a
// search have parts, are handed on beside it.
#pragma once

#include <utility>
#include <vector>

#include "search/incumbent.h"

namespace emplace {

template <class Solution>
class SearchContext {
 public:
  SearchContext() = default;
  explicit SearchContext(std::vector<Solution> starts) : starts_(std::move(starts)) {}

  // Valued answers of the problem.
  const std::vector<Solution>& starts() const { return starts_; }
  BasicIncumbent<Solution>& incumbent() { return incumbent_; }
  const BasicIncumbent<Solution>& incumbent() const { return incumbent_; }

 protected:
  void set_starts(std::vector<Solution> starts) { starts_ = std::move(starts); }

 private:
  std::vector<Solution> starts_;
  BasicIncumbent<Solution> incumbent_;
};

}  // namespace emplace
