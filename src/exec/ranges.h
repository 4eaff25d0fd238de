// Plain loops over the elements of tensors, on libtorch's own threads: at::parallel_for would need
// the compiler's OpenMP, whose threads would be others.
#pragma once

#include <ATen/TensorIterator.h>

#include "exec/kernel.h"

namespace emplace::exec {

// Calls body(begin, end) for ranges of elements of a contiguous CPU tensor that cover it.
template <class Body>
void for_ranges(const Tensor& like, const Body& body) {
  if (like.numel() == 0) return;
  const Tensor flat = like.detach().view({-1});
  const auto size = static_cast<std::int64_t>(flat.element_size());
  const auto* start = static_cast<const char*>(flat.data_ptr());
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).set_check_mem_overlap(false).resize_outputs(false);
  config.add_output(flat);
  config.build().for_each([&](char** data, const std::int64_t*, std::int64_t count) {
    const std::int64_t begin = (data[0] - start) / size;
    body(begin, begin + count);
  });
}

// Calls body(i) for every i below count, shared by the threads.
template <class Body>
void for_parts(std::int64_t count, const Body& body) {
  if (count == 0) return;
  const Tensor parts = at::empty({count}, torch::kByte);
  const auto* start = static_cast<const char*>(parts.data_ptr());
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).set_check_mem_overlap(false).resize_outputs(false);
  config.add_output(parts);
  constexpr std::int64_t kEach = 1;
  config.build().for_each(
      [&](char** data, const std::int64_t*, std::int64_t found) {
        const torch::NoGradGuard no_gradients;
        for (std::int64_t i = 0; i < found; ++i) body(data[0] - start + i);
      },
      kEach);
}

}  // namespace emplace::exec
