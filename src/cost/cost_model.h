// How long an op takes on a device: what was measured, or what the device's curves say.
#pragma once

#include <optional>
#include <string_view>

#include "base/decimal.h"
#include "base/ids.h"

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "cost/op_work.h"

namespace emplace {

// A measured time under this key, which only readers of foreign formats write, is for any device.
inline constexpr std::string_view kAnyDevice = "*";

// The measured time of an op on a device: by the device's name, else by its kind, else for any.
std::optional<Decimal> measured_time_us(const Graph& graph, OpId op, const Device& device);

// The peak that an op's kernels could reach; 0 where the kind has no figure for it.
double peak_flops(const DeviceKind& kind, DType dtype, OpClass op_class);

// The analytic model. With the curve of the op's class,
//   busy    = tiles / (tiles + half_tiles) * depth / (depth + half_depth) [* unaligned]
//   compute = FLOPs / (peak * curve.compute * busy)
//   memory  = bytes / (bandwidth * curve.bandwidth) + bytes / channels / lane_bandwidth
//   time    = pieces * max(launches * launch_us, ramp_us + (compute and memory) / pieces)
// where a factor or term counts only if the work has its tiles, depth or channels, and compute and
// memory overlap (the longer counts) but in convolutions, whose changes of layout are kernels of
// their own (both count). Never falls as FLOPs or bytes grow. The kind must have a
// peak and a bandwidth where the work needs them; where it has none, the work counts as free.
double work_time_us(const OpWork& work, const DeviceKind& kind);

// The same for the curve and the peaks themselves.
double curve_time_us(const OpWork& work, const CostCurve& curve, double peak, double bandwidth,
                     double launch_us);

// The same for an op; throws an Error that names it when the kind lacks what an estimate needs.
double analytic_time_us(const Graph& graph, OpId op, const OpWork& work, const DeviceKind& kind);
double analytic_time_us(const Graph& graph, OpId op, const DeviceKind& kind);

}  // namespace emplace
