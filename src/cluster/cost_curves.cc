#include "cluster/cost_curves.h"

#include <algorithm>

namespace emplace {
namespace {

constexpr std::array<std::string_view, kNumOpClasses> kNames{{
    "matmul",
    "linear",
    "matmul_grad",
    "batched_matmul",
    "attention",
    "convolution",
    "convolution_grad",
    "convolution_1d",
    "convolution_1d_grad",
    "pointwise",
    "pointwise_grad",
    "depthwise",
    "depthwise_grad",
    "elementwise",
    "broadcast",
    "random",
    "fill",
    "copy",
    "concat",
    "reduction",
    "softmax",
    "softmax_grad",
    "pool",
    "pool_grad",
    "average_pool",
    "average_pool_grad",
    "batch_norm",
    "batch_norm_grad",
    "layer_norm",
    "layer_norm_grad",
    "gather",
    "scatter",
    "loss",
    "metadata",
    "update",
}};

}  // namespace

std::string_view op_class_name(OpClass op_class) {
  return kNames[static_cast<std::size_t>(op_class)];
}

std::optional<OpClass> parse_op_class(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<OpClass>(found - kNames.begin());
}

const std::array<CurveField, 9>& curve_fields() {
  static constexpr std::array<CurveField, 9> kFields{{
      {"launches", &CostCurve::launches, 0.1, 100},
      {"ramp_us", &CostCurve::ramp_us, 0, 1e6},
      {"compute", &CostCurve::compute, 1e-4, 1},
      {"compute_16bit", &CostCurve::compute_16bit, 0, 1},
      {"bandwidth", &CostCurve::bandwidth, 1e-4, 1},
      {"half_depth", &CostCurve::half_depth, 0, 1e6},
      {"half_tiles", &CostCurve::half_tiles, 0, 1e6},
      {"unaligned", &CostCurve::unaligned, 1e-3, 1},
      {"lane_bandwidth", &CostCurve::lane_bandwidth, 0, 1e15},
  }};
  return kFields;
}

bool uses_field(OpClass op_class, double CostCurve::*field) {
  const bool convolution =
      op_class == OpClass::kConvolution || op_class == OpClass::kConvolutionGrad ||
      op_class == OpClass::kConvolution1d || op_class == OpClass::kConvolution1dGrad ||
      op_class == OpClass::kPointwise || op_class == OpClass::kPointwiseGrad;
  const bool product = op_class == OpClass::kMatMul || op_class == OpClass::kLinear ||
                       op_class == OpClass::kMatMulGrad || op_class == OpClass::kBatchedMatMul ||
                       op_class == OpClass::kAttention;
  if (field == &CostCurve::compute_16bit) return op_class == OpClass::kAttention;
  if (field == &CostCurve::half_depth) return convolution;
  if (field == &CostCurve::half_tiles) {
    return convolution || (product && op_class != OpClass::kAttention);
  }
  if (field == &CostCurve::unaligned) return product;
  if (field == &CostCurve::lane_bandwidth) {
    return op_class == OpClass::kBatchNorm || op_class == OpClass::kBatchNormGrad;
  }
  if (op_class == OpClass::kMetadata) return field == &CostCurve::launches;
  return true;
}

CostCurves typical_curves() {
  CostCurves curves;
  for (std::size_t i = 0; i < kNumOpClasses; ++i) {
    curves[static_cast<OpClass>(i)] = {
        .launches = 1.2, .ramp_us = 3, .compute = 0.5, .bandwidth = 0.7};
  }
  for (const OpClass product :
       {OpClass::kMatMul, OpClass::kLinear, OpClass::kMatMulGrad, OpClass::kBatchedMatMul}) {
    curves[product] = {.launches = 1.5,
                       .ramp_us = 8,
                       .compute = 0.8,
                       .bandwidth = 0.8,
                       .half_tiles = 30,
                       .unaligned = 0.4};
  }
  curves[OpClass::kAttention] = {.launches = 2,
                                 .ramp_us = 8,
                                 .compute = 0.3,
                                 .compute_16bit = 0.3,
                                 .bandwidth = 0.6,
                                 .unaligned = 0.8};
  for (const OpClass convolution : {OpClass::kConvolution, OpClass::kConvolutionGrad,
                                    OpClass::kConvolution1d, OpClass::kConvolution1dGrad}) {
    curves[convolution] = {.launches = 2,
                           .ramp_us = 10,
                           .compute = 0.8,
                           .bandwidth = 0.3,
                           .half_depth = 500,
                           .half_tiles = 60};
  }
  for (const OpClass pointwise : {OpClass::kPointwise, OpClass::kPointwiseGrad}) {
    curves[pointwise] = {.launches = 2,
                         .ramp_us = 10,
                         .compute = 0.7,
                         .bandwidth = 0.6,
                         .half_depth = 50,
                         .half_tiles = 30};
  }
  for (const OpClass depthwise : {OpClass::kDepthwise, OpClass::kDepthwiseGrad}) {
    curves[depthwise] = {.launches = 2, .ramp_us = 5, .compute = 0.1, .bandwidth = 0.4};
  }
  for (const OpClass norm : {OpClass::kBatchNorm, OpClass::kBatchNormGrad}) {
    curves[norm] = {
        .launches = 2, .ramp_us = 5, .compute = 0.5, .bandwidth = 0.4, .lane_bandwidth = 8e9};
  }
  for (const OpClass slow : {OpClass::kCopy, OpClass::kPool, OpClass::kPoolGrad,
                             OpClass::kAveragePool, OpClass::kAveragePoolGrad, OpClass::kLayerNorm,
                             OpClass::kLayerNormGrad, OpClass::kScatter}) {
    curves[slow].bandwidth = 0.35;
  }
  curves[OpClass::kElementwise] = {.launches = 1, .ramp_us = 2, .compute = 0.5, .bandwidth = 0.85};
  curves[OpClass::kUpdate] = {.launches = 0.2, .ramp_us = 0.5, .compute = 0.5, .bandwidth = 0.85};
  curves[OpClass::kMetadata] = {.launches = 0.8};
  return curves;
}

}  // namespace emplace
