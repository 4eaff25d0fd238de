#include "support/errors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

namespace emplace::bench {
namespace {

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const double other : values)
      ranks[i] += other < values[i] ? 1 : other == values[i] ? 0.5 : 0;
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto mean = [](const std::vector<double>& x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  };
  const double am = mean(a);
  const double bm = mean(b);
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - am) * (b[i] - bm);
    aa += (a[i] - am) * (a[i] - am);
    bb += (b[i] - bm) * (b[i] - bm);
  }
  return aa == 0 || bb == 0 ? 1 : ab / std::sqrt(aa * bb);
}

}  // namespace

Errors errors_of(const std::vector<double>& predicted, const std::vector<double>& measured,
                 double factor) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    errors.push_back(std::abs(predicted[i] / factor / measured[i] - 1));
  }
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back(),
          correlation(ranks_of(predicted), ranks_of(measured))};
}

std::string text(const Errors& errors) {
  return fmt::format("{:.1f} / {:.1f} / {:.2f}", 100 * errors.median, 100 * errors.worst,
                     errors.spearman);
}

}  // namespace emplace::bench
