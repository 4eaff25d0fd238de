#include "report/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace emplace {
namespace {

// Quantiles of Student's t at 97.5 %, by degrees of freedom from 1.
constexpr std::array kStudentQuantiles{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                       2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                       2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                       2.060,  2.056, 2.052, 2.048, 2.045, 2.042};

double student_quantile(std::size_t freedom) {
  return kStudentQuantiles[std::min(freedom, kStudentQuantiles.size()) - 1];
}

}  // namespace

MeanInterval mean_interval(std::span<const double> values) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto count = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / count;
  if (values.size() < 2) return {mean, -kInfinity, kInfinity};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (count - 1) / count);
  const double half = student_quantile(values.size() - 1) * error;
  return {mean, mean - half, mean + half};
}

MeanInterval geometric_interval(std::span<const double> logarithms) {
  const MeanInterval interval = mean_interval(logarithms);
  return {std::exp(interval.mean), std::exp(interval.low), std::exp(interval.high)};
}

double median_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted.at(sorted.size() / 2);
}

}  // namespace emplace
