// Matrix products by all threads of a device's team, whatever library multiplies.
#pragma once

#include "exec/torch.h"

namespace emplace::exec {

// As at::mm, at::addmm and at::matmul.
at::Tensor team_mm(const at::Tensor& a, const at::Tensor& b);
at::Tensor team_addmm(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b, double beta,
                      double alpha);
at::Tensor team_matmul(const at::Tensor& a, const at::Tensor& b);

}  // namespace emplace::exec
