// How kernels of a class of operators approach a device's peaks. A kind of device holds one curve
// for each class; cost/cost_model.h has the formula, cost/fit.h finds curves from measurements, and
// docs/cost-model.md explains both.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace emplace {

// Operators whose kernels behave alike. What an op's class is: cost/op_class.h, cost/op_work.h.
enum class OpClass : std::uint8_t {
  kMatMul,         // activations, or their gradients, times weights; recurrent cells
  kLinear,         // the same and a bias
  kMatMulGrad,     // products of two activations: gradients of weights
  kBatchedMatMul,  // one product for each entry of a batch
  kAttention,      // fused attention
  kConvolution,
  kConvolutionGrad,  // by input or by weights
  kConvolution1d,    // over sequences, which libraries do less well
  kConvolution1dGrad,
  kPointwise,  // convolutions of one tap: matrix products on images
  kPointwiseGrad,
  kDepthwise,  // convolutions of one channel each
  kDepthwiseGrad,
  kElementwise,  // one pass over operands of one shape; also what no other class claims
  kBroadcast,    // the same over operands of different shapes
  kRandom,       // draws random numbers: dropout
  kFill,         // writes without reading
  kCopy,         // changes the layout: transposes, clones
  kConcat,       // moves whole runs of bytes: concatenation, padding, splits
  kReduction,
  kSoftmax,
  kSoftmaxGrad,
  kPool,  // of maxima; also changes of an image's size
  kPoolGrad,
  kAveragePool,
  kAveragePoolGrad,
  kBatchNorm,  // a mean for each channel
  kBatchNormGrad,
  kLayerNorm,  // a mean for each row
  kLayerNormGrad,
  kGather,    // reads only as much of its inputs as it writes
  kScatter,   // writes to places that an index says; sorts
  kLoss,      // negative log-likelihood, which looks at one class of each row
  kMetadata,  // starts no kernel
  kUpdate,    // optimizer steps: read gradient and parameter, write the parameter
};

inline constexpr std::size_t kNumOpClasses = 35;

std::string_view op_class_name(OpClass op_class);
std::optional<OpClass> parse_op_class(std::string_view name);

// One class's curve. The defaults are the roofline itself: peaks reached at once.
struct CostCurve {
  double launches = 1;        // what starting one op costs the host, in launch_us of the kind
  double ramp_us = 0;         // until the device is full and drained again, at any size
  double compute = 1;         // of the peak FLOP/s, reached by large kernels
  double compute_16bit = 0;   // the same of 16-bit types, where their kernels differ; 0: compute
  double bandwidth = 1;       // of the memory bandwidth, likewise
  double half_depth = 0;      // products summed up, at which a convolution reaches half of it
  double half_tiles = 0;      // tiles of a product at which half of the device is busy
  double unaligned = 1;       // share of `compute` left where rows are no multiple of 16 bytes
  double lane_bandwidth = 0;  // bytes per second through one channel of a batch norm; 0: no limit

  friend bool operator==(const CostCurve&, const CostCurve&) = default;
};

// A field of a curve: its name in files, the values it may have, and which classes it matters to.
struct CurveField {
  std::string_view name;
  double CostCurve::*value;
  double low;
  double high;
};

const std::array<CurveField, 9>& curve_fields();

// Whether the class's formula looks at the field at all.
bool uses_field(OpClass op_class, double CostCurve::*field);

class CostCurves {
 public:
  const CostCurve& operator[](OpClass op_class) const {
    return curves_[static_cast<std::size_t>(op_class)];
  }
  CostCurve& operator[](OpClass op_class) { return curves_[static_cast<std::size_t>(op_class)]; }

  friend bool operator==(const CostCurves&, const CostCurves&) = default;

 private:
  std::array<CostCurve, kNumOpClasses> curves_{};
};

// Round figures from experience with GPUs, fitted to nothing: where a fit starts that must not know
// any measurement, and what holds it back where measurements are few.
CostCurves typical_curves();

// Fitted to measurements (docs/cost-model.md): of an NVIDIA H200, and of 16 CPU cores.
CostCurves gpu_curves();
CostCurves cpu_curves();

}  // namespace emplace
