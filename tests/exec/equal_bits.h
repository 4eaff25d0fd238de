// Tensors that are the same to the last bit, where they are numbers.
#pragma once

#include "exec/torch.h"

namespace emplace::exec {

inline bool equal_bits(const torch::Tensor& a, const torch::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.sizes() == b.sizes() && a.dtype() == b.dtype() &&
         torch::equal(torch::nan_to_num(a), torch::nan_to_num(b));
}

}  // namespace emplace::exec
