#include "learn/policies/policy.h"

namespace emplace::learn {

Samples Samples::slice(std::int64_t first, std::int64_t count) const {
  const auto rows = [&](const torch::Tensor& tensor) {
    if (!tensor.defined() || tensor.size(0) == 1) return tensor;  // one row for all
    return tensor.slice(0, first, first + count);
  };
  Samples result;
  result.actions = actions.slice(0, first, first + count);
  result.log_probs = log_probs.defined() ? log_probs.slice(0, first, first + count) : log_probs;
  for (const torch::Tensor& tensor : context) result.context.push_back(rows(tensor));
  return result;
}

}  // namespace emplace::learn
