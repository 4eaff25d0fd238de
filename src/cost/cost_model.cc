#include "cost/cost_model.h"

#include <algorithm>
#include <array>

#include "base/error.h"

#include "cost/op_class.h"

namespace emplace {
namespace {

// The fractions of a device's peaks that kernels of a class reach (docs/cost-model.md).
struct Efficiency {
  double flops;
  double bandwidth;
};

constexpr std::array<Efficiency, kNumOpClasses> kEfficiency{{
    {0.55, 0.70},  // matmul
    {0.45, 0.60},  // convolution
    {0.50, 0.75},  // elementwise
    {0.40, 0.60},  // reduction
    {0.40, 0.55},  // normalization
    {0.50, 0.60},  // gather
    {0.50, 0.70},  // copy
    {0.50, 0.75},  // update
}};

// Frameworks multiply float32 matrices in TF32 where the device has it.
double peak_flops(const DeviceKind& kind, DType dtype, OpClass op_class) {
  const auto find = [&](std::string_view name) {
    const auto entry = kind.peak_flops.find(name);
    return entry == kind.peak_flops.end() ? 0.0 : entry->second;
  };
  const bool matrix = op_class == OpClass::kMatMul || op_class == OpClass::kConvolution;
  if (matrix && dtype == DType::kFloat32) {
    if (const double tf32 = find("tf32"); tf32 > 0) return tf32;
  }
  if (const double exact = find(dtype_name(dtype)); exact > 0) return exact;
  return find("float32");
}

DType compute_dtype(const Graph& graph, OpId op) {
  for (const auto tensors : {graph.outputs(op), graph.inputs(op)}) {
    for (const TensorId tensor : tensors) {
      if (graph.has_shape(tensor)) return graph.dtype(tensor);
    }
  }
  return DType::kFloat32;
}

Bytes moved_bytes(const Graph& graph, OpId op, OpClass op_class) {
  if (const auto given = graph.bytes_moved(op)) return *given;
  Bytes written = 0;
  for (const TensorId tensor : graph.outputs(op)) written += graph.bytes(tensor);
  Bytes moved = written;
  for (const TensorId tensor : graph.inputs(op)) {
    const Bytes bytes = graph.bytes(tensor);
    moved += op_class == OpClass::kGather ? std::min(bytes, written) : bytes;
    // An update writes its parameter in place.
    const bool parameter = graph.role(graph.producer(tensor)) == OpRole::kParameter;
    if (op_class == OpClass::kUpdate && parameter) moved += bytes;
  }
  return moved;
}

}  // namespace

std::optional<CostMode> parse_cost_mode(std::string_view name) {
  if (name == "auto") return CostMode::kAuto;
  if (name == "measured") return CostMode::kMeasured;
  if (name == "analytic") return CostMode::kAnalytic;
  return std::nullopt;
}

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

double analytic_time_us(const Graph& graph, OpId op, const DeviceKind& kind) {
  const OpClass op_class = classify(graph.type(op), graph.phase(op));
  const Efficiency efficiency = kEfficiency[static_cast<std::size_t>(op_class)];
  const auto missing = [&](std::string_view field) {
    fail_input(
        "op '{}': has no measured time for kind '{}', and the kind has no {} to estimate one",
        graph.op_name(op), kind.name, field);
  };
  const auto flops = static_cast<double>(graph.flops(op).value_or(0));
  const auto bytes = static_cast<double>(moved_bytes(graph, op, op_class));
  double compute_us = 0;
  if (flops > 0) {
    const double peak = peak_flops(kind, compute_dtype(graph, op), op_class);
    if (peak <= 0) missing("peak_flops");
    compute_us = flops / (peak * efficiency.flops) * 1e6;
  }
  double memory_us = 0;
  if (bytes > 0) {
    if (kind.memory_bandwidth <= 0) missing("memory_bandwidth");
    memory_us = bytes / (kind.memory_bandwidth * efficiency.bandwidth) * 1e6;
  }
  return kind.launch_us + std::max(compute_us, memory_us);
}

}  // namespace emplace
