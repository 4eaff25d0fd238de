// Differentiating kernels with libtorch, for gradient ops.
#pragma once

#include <vector>

#include "exec/kernel.h"

namespace emplace::exec {

// Whether the type is a gradient that follows from running its operator.
bool can_be_derived(std::string_view type);

// Which of the forward op's outputs a gradient op reads gradients of: its first inputs.
Integers arrived_gradients(const Call& gradient);

// Runs the kernel on the call, and turns the gradients of its outputs `arrived` into those of its
// inputs `targets`.
Tensors gradients_of(const Kernel& kernel, Call call, const std::vector<std::size_t>& targets,
                     const Tensors& gradients, const Integers& arrived);

}  // namespace emplace::exec
