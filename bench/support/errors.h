// How far predictions are off.
#pragma once

#include <string>
#include <vector>

namespace emplace::bench {

struct Errors {
  double median = 0;  // of |predicted / measured - 1|
  double worst = 0;
  double spearman = 1;
};

// After dividing predictions by the factor.
Errors errors_of(const std::vector<double>& predicted, const std::vector<double>& measured,
                 double factor = 1);

// As "median % / worst % / Spearman".
std::string text(const Errors& errors);

}  // namespace emplace::bench
