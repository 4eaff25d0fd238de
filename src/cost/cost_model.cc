#include "cost/cost_model.h"

#include <algorithm>

#include "base/error.h"

namespace emplace {
namespace {

bool uses_matrix_units(OpClass op_class) {
  switch (op_class) {
    case OpClass::kMatMul:
    case OpClass::kLinear:
    case OpClass::kMatMulGrad:
    case OpClass::kBatchedMatMul:
    case OpClass::kAttention:
    case OpClass::kConvolution:
    case OpClass::kConvolutionGrad:
    case OpClass::kConvolution1d:
    case OpClass::kConvolution1dGrad:
    case OpClass::kPointwise:
    case OpClass::kPointwiseGrad:
      return true;
    default:
      return false;
  }
}

bool overlaps(OpClass op_class) {
  return op_class != OpClass::kConvolution && op_class != OpClass::kConvolutionGrad &&
         op_class != OpClass::kConvolution1d && op_class != OpClass::kConvolution1dGrad &&
         op_class != OpClass::kDepthwise && op_class != OpClass::kDepthwiseGrad;
}

}  // namespace

std::optional<Decimal> measured_time_us(const Graph& graph, OpId op, const Device& device) {
  std::optional<Decimal> by_kind;
  std::optional<Decimal> by_any;
  for (const MeasuredTime& time : graph.measured_times(op)) {
    const std::string_view name = graph.strings().get(time.device);
    if (name == device.name) return time.microseconds;
    if (name == device.kind) by_kind = time.microseconds;
    if (name == kAnyDevice) by_any = time.microseconds;
  }
  return by_kind ? by_kind : by_any;
}

// Frameworks multiply float32 matrices in TF32 where the device has it; their fused attention does
// not. Figures for 16-bit types are those of matrix units, which no other class uses.
double peak_flops(const DeviceKind& kind, DType dtype, OpClass op_class) {
  const auto find = [&](std::string_view name) {
    const auto entry = kind.peak_flops.find(name);
    return entry == kind.peak_flops.end() ? 0.0 : entry->second;
  };
  const bool matrix = uses_matrix_units(op_class);
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  if (matrix && op_class != OpClass::kAttention && dtype == DType::kFloat32) {
    if (const double tf32 = find("tf32"); tf32 > 0) return tf32;
  }
  if (matrix || !half) {
    if (const double exact = find(dtype_name(dtype)); exact > 0) return exact;
  }
  if (const double single = find("float32"); single > 0) return single;
  return find(dtype_name(dtype));
}

double curve_time_us(const OpWork& work, const CostCurve& curve, double peak, double bandwidth,
                     double launch_us) {
  double compute_us = 0;
  if (work.flops > 0 && peak > 0) {
    const bool narrow = work.dtype == DType::kFloat16 || work.dtype == DType::kBFloat16;
    const double share = narrow && curve.compute_16bit > 0 ? curve.compute_16bit : curve.compute;
    compute_us = work.flops / (peak * share) * 1e6;
    if (work.unaligned) compute_us /= curve.unaligned;
    if (work.tiles > 0) compute_us *= (work.tiles + curve.half_tiles) / work.tiles;
    if (work.depth > 0) compute_us *= (work.depth + curve.half_depth) / work.depth;
  }
  double memory_us = 0;
  if (work.bytes > 0 && bandwidth > 0) {
    memory_us = work.bytes / (bandwidth * curve.bandwidth) * 1e6;
    if (curve.lane_bandwidth > 0 && work.channels > 0) {
      memory_us += work.bytes / work.channels / curve.lane_bandwidth * 1e6;
    }
  }
  const double work_us =
      overlaps(work.op_class) ? std::max(compute_us, memory_us) : compute_us + memory_us;
  return work.pieces * std::max(launch_us * curve.launches, curve.ramp_us + work_us / work.pieces);
}

double work_time_us(const OpWork& work, const DeviceKind& kind) {
  const double peak = work.flops > 0 ? peak_flops(kind, work.dtype, work.op_class) : 0;
  return curve_time_us(work, kind.curves[work.op_class], peak, kind.memory_bandwidth,
                       kind.launch_us);
}

double analytic_time_us(const Graph& graph, OpId op, const OpWork& work, const DeviceKind& kind) {
  const auto missing = [&](std::string_view field) {
    fail_input(
        "op '{}': has no measured time for kind '{}', and the kind has no {} to estimate one",
        graph.op_name(op), kind.name, field);
  };
  if (work.flops > 0 && peak_flops(kind, work.dtype, work.op_class) <= 0) missing("peak_flops");
  if (work.bytes > 0 && kind.memory_bandwidth <= 0) missing("memory_bandwidth");
  return work_time_us(work, kind);
}

double analytic_time_us(const Graph& graph, OpId op, const DeviceKind& kind) {
  return analytic_time_us(graph, op, WorkReader(graph).work(op), kind);
}

}  // namespace emplace
