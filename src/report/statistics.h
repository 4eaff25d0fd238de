// Means with confidence intervals of 95 %.
#pragma once

#include <span>

namespace emplace {

struct MeanInterval {
  double mean = 0;
  double low = 0;
  double high = 0;
};

// Of the mean of a normal population, by Student's t; unbounded for a single value.
MeanInterval mean_interval(std::span<const double> values);

// The same of logarithms, turned back: the geometric mean of ratios or times, given their
// logarithms.
MeanInterval geometric_interval(std::span<const double> logarithms);

// Of an even number, the greater of the two in the middle. Not of nothing.
double median_of(std::span<const double> values);

}  // namespace emplace
