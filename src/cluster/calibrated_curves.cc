// Curves fitted to measurements: what bench/cost prints with --curves, in the order of OpClass.
// docs/cost-model.md says which measurements, how well they fit, and which classes had none.
// Updates are such: they have the bandwidth of elementwise ops and, as optimizers update many
// parameters by one kernel, a fifth of a launch each.
#include "cluster/cost_curves.h"

namespace emplace {
namespace {

// clang-format off
constexpr std::array<CostCurve, kNumOpClasses> kGpu{{
    {.launches = 1.66, .ramp_us = 15.7, .compute = 0.725, .bandwidth = 0.881, .half_tiles = 10.9, .unaligned = 0.373},  // matmul
    {.launches = 1.94, .ramp_us = 9.07, .compute = 0.764, .bandwidth = 0.799, .half_tiles = 46.6, .unaligned = 0.351},  // linear
    {.launches = 1.54, .ramp_us = 12.6, .compute = 0.452, .bandwidth = 0.69, .half_tiles = 6.02, .unaligned = 0.531},  // matmul_grad
    {.launches = 1.33, .ramp_us = 6.88, .compute = 0.8, .bandwidth = 0.764, .half_tiles = 30, .unaligned = 0.4},  // batched_matmul
    {.launches = 1.4, .ramp_us = 26.6, .compute = 0.328, .compute_16bit = 0.25, .bandwidth = 0.601, .unaligned = 0.8},  // attention
    {.launches = 3.24, .ramp_us = 34.8, .bandwidth = 0.191, .half_depth = 1200, .half_tiles = 22.4},  // convolution
    {.launches = 1.4, .ramp_us = 44.7, .compute = 0.725, .bandwidth = 0.43, .half_depth = 1240, .half_tiles = 52.7},  // convolution_grad
    {.launches = 1.39, .ramp_us = 8.91, .compute = 0.532, .bandwidth = 0.413, .half_depth = 457, .half_tiles = 56.8},  // convolution_1d
    {.launches = 1.39, .ramp_us = 5.43, .compute = 0.289, .half_depth = 178, .half_tiles = 43.4},  // convolution_1d_grad
    {.launches = 2.71, .ramp_us = 14.1, .compute = 0.65, .bandwidth = 0.623, .half_depth = 50.2, .half_tiles = 30.3},  // pointwise
    {.launches = 2.26, .ramp_us = 14.9, .compute = 0.278, .bandwidth = 0.392, .half_depth = 43.9, .half_tiles = 24.7},  // pointwise_grad
    {.launches = 1.97, .ramp_us = 5.02, .compute = 0.0452, .bandwidth = 0.615},  // depthwise
    {.launches = 1.41, .ramp_us = 4.57, .compute = 0.0216, .bandwidth = 0.168},  // depthwise_grad
    {.launches = 1, .ramp_us = 4.47, .compute = 0.5, .bandwidth = 0.898},  // elementwise
    {.launches = 1, .ramp_us = 3.82, .compute = 0.5, .bandwidth = 0.526},  // broadcast
    {.launches = 1.27, .ramp_us = 3.33, .compute = 0.5, .bandwidth = 0.669},  // random
    {.launches = 1.19, .ramp_us = 2.88, .compute = 0.5},  // fill
    {.launches = 1.16, .ramp_us = 3.02, .compute = 0.5, .bandwidth = 0.426},  // copy
    {.launches = 1.39, .ramp_us = 3.29, .compute = 0.5, .bandwidth = 0.567},  // concat
    {.launches = 1.37, .ramp_us = 3.91, .compute = 0.5, .bandwidth = 0.503},  // reduction
    {.launches = 1.24, .ramp_us = 3.13, .compute = 0.5, .bandwidth = 0.63},  // softmax
    {.launches = 1.22, .ramp_us = 3.79, .compute = 0.5, .bandwidth = 0.496},  // softmax_grad
    {.launches = 1.33, .ramp_us = 3.41, .compute = 0.5, .bandwidth = 0.401},  // pool
    {.launches = 0.838, .ramp_us = 9.04, .compute = 0.5, .bandwidth = 0.196},  // pool_grad
    {.launches = 1.98, .ramp_us = 2.97, .compute = 0.5, .bandwidth = 0.162},  // average_pool
    {.launches = 1.62, .ramp_us = 7.4, .compute = 0.5, .bandwidth = 0.077},  // average_pool_grad
    {.launches = 3.81, .ramp_us = 4.52, .compute = 0.5, .bandwidth = 0.35, .lane_bandwidth = 12.2e9},  // batch_norm
    {.launches = 1.78, .ramp_us = 2.4, .compute = 0.5, .bandwidth = 0.536, .lane_bandwidth = 8.84e9},  // batch_norm_grad
    {.launches = 1.67, .ramp_us = 2.67, .compute = 0.5, .bandwidth = 0.156},  // layer_norm
    {.launches = 2.14, .ramp_us = 4.04, .compute = 0.5, .bandwidth = 0.188},  // layer_norm_grad
    {.launches = 1.46, .ramp_us = 3, .compute = 0.5, .bandwidth = 0.7},  // gather
    {.launches = 7.33, .ramp_us = 3, .compute = 0.5, .bandwidth = 0.583},  // scatter
    {.launches = 1.72, .ramp_us = 2.99, .compute = 0.5, .bandwidth = 0.88},  // loss
    {.launches = 0.808},  // metadata
    {.launches = 0.2, .ramp_us = 0.5, .compute = 0.5, .bandwidth = 0.898},  // update
}};

constexpr std::array<CostCurve, kNumOpClasses> kCpu{{
    {.launches = 1.56, .ramp_us = 8.37, .compute = 0.706, .bandwidth = 0.734, .half_tiles = 6.67, .unaligned = 0.637},  // matmul
    {.launches = 1.56, .ramp_us = 8.56, .compute = 0.526, .bandwidth = 0.8, .half_tiles = 23.4, .unaligned = 0.707},  // linear
    {.launches = 1.56, .ramp_us = 8.59, .compute = 0.486, .half_tiles = 3.64},  // matmul_grad
    {.launches = 1.56, .ramp_us = 7.97, .compute = 0.465, .bandwidth = 0.688, .half_tiles = 28.1, .unaligned = 0.4},  // batched_matmul
    {.launches = 2, .ramp_us = 8, .compute = 0.3, .bandwidth = 0.6, .unaligned = 0.8},  // attention
    {.launches = 2.07, .ramp_us = 9.67, .compute = 0.536, .bandwidth = 0.276, .half_depth = 484, .half_tiles = 13.8},  // convolution
    {.launches = 2.07, .ramp_us = 9.49, .compute = 0.435, .bandwidth = 0.27, .half_depth = 290, .half_tiles = 8.56},  // convolution_grad
    {.launches = 2.07, .ramp_us = 10.1, .compute = 0.493, .bandwidth = 0.277, .half_depth = 675, .half_tiles = 69.9},  // convolution_1d
    {.launches = 2.07, .ramp_us = 10, .compute = 0.631, .bandwidth = 0.246, .half_depth = 851, .half_tiles = 92.6},  // convolution_1d_grad
    {.launches = 2.07, .ramp_us = 7.39, .compute = 0.301, .bandwidth = 0.601, .half_depth = 147, .half_tiles = 4.99},  // pointwise
    {.launches = 2.07, .ramp_us = 6.77, .compute = 0.391, .bandwidth = 0.056, .half_depth = 83.7, .half_tiles = 10.9},  // pointwise_grad
    {.launches = 2.07, .ramp_us = 5.37, .compute = 0.118, .bandwidth = 0.165},  // depthwise
    {.launches = 2.07, .ramp_us = 5.74, .compute = 0.0151, .bandwidth = 0.422},  // depthwise_grad
    {.launches = 1, .ramp_us = 1.22, .compute = 0.5, .bandwidth = 0.201},  // elementwise
    {.launches = 1.24, .ramp_us = 3, .compute = 0.5, .bandwidth = 0.636},  // broadcast
    {.launches = 1.24, .ramp_us = 3.01, .compute = 0.5, .bandwidth = 0.00568},  // random
    {.launches = 1.26, .ramp_us = 3, .compute = 0.5, .bandwidth = 0.695},  // fill
    {.launches = 1.24, .ramp_us = 2.98, .compute = 0.5, .bandwidth = 0.531},  // copy
    {.launches = 1.24, .ramp_us = 2.82, .compute = 0.5, .bandwidth = 0.131},  // concat
    {.launches = 1.26, .ramp_us = 3.02, .compute = 0.5, .bandwidth = 0.705},  // reduction
    {.launches = 1.27, .ramp_us = 2.98, .compute = 0.5, .bandwidth = 0.202},  // softmax
    {.launches = 1.26, .ramp_us = 2.98, .compute = 0.5, .bandwidth = 0.312},  // softmax_grad
    {.launches = 1.24, .ramp_us = 3, .compute = 0.5, .bandwidth = 0.0414},  // pool
    {.launches = 1.24, .ramp_us = 3, .compute = 0.5, .bandwidth = 0.113},  // pool_grad
    {.launches = 1.24, .ramp_us = 3.01, .compute = 0.5, .bandwidth = 0.0408},  // average_pool
    {.launches = 1.24, .ramp_us = 3.04, .compute = 0.5, .bandwidth = 0.0643},  // average_pool_grad
    {.launches = 2.07, .ramp_us = 4.05, .compute = 0.5, .bandwidth = 0.103, .lane_bandwidth = 11.5e9},  // batch_norm
    {.launches = 2.07, .ramp_us = 3.96, .compute = 0.5, .bandwidth = 0.196, .lane_bandwidth = 15.8e9},  // batch_norm_grad
    {.launches = 1.24, .ramp_us = 2.98, .compute = 0.5, .bandwidth = 0.54},  // layer_norm
    {.launches = 1.24, .ramp_us = 2.99, .compute = 0.5, .bandwidth = 0.514},  // layer_norm_grad
    {.launches = 1.24, .ramp_us = 3.26, .compute = 0.5, .bandwidth = 0.388},  // gather
    {.launches = 1.24, .ramp_us = 2.97, .compute = 0.5, .bandwidth = 0.0685},  // scatter
    {.launches = 1.32, .ramp_us = 2.99, .compute = 0.5, .bandwidth = 0.112},  // loss
    {.launches = 1.01},  // metadata
    {.launches = 0.2, .ramp_us = 0.5, .compute = 0.5, .bandwidth = 0.201},  // update
}};
// clang-format on

CostCurves make(const std::array<CostCurve, kNumOpClasses>& table) {
  CostCurves curves;
  for (std::size_t i = 0; i < kNumOpClasses; ++i) curves[static_cast<OpClass>(i)] = table[i];
  return curves;
}

}  // namespace

CostCurves gpu_curves() {
  return make(kGpu);
}

CostCurves cpu_curves() {
  return make(kCpu);
}

}  // namespace emplace
