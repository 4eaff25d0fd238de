// Budgets of tests: so many evaluations.
#pragma once

#include <cstdint>

#include <emplace/search.h>

namespace emplace {

inline Budget evaluations(std::int64_t count, int threads = 1) {
  Budget budget;
  budget.evaluations = count;
  budget.threads = threads;
  return budget;
}

}  // namespace emplace
