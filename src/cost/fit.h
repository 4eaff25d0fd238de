// Finds a device's cost curves from graphs whose ops were timed on it.
//
// What is minimised, over all classes' curves at once, is the sum over graphs of
//   the mean of the squared logarithmic error of its ops, each weighted by its share of the time,
//   and the squared logarithmic error of its total,
// with a weak pull towards the curves that the fit starts from, so that classes that the graphs do
// not show stay as they were. The speed of the host that launched the kernels differs from capture
// to capture (docs/cost-model.md), so while curves are fitted each graph has a factor of its own on
// launch_us; the launch_us of the result lies between those of the fastest and the slowest host.
// Search by coordinates with growing and shrinking steps: no randomness.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"

#include "cost/op_work.h"

namespace emplace {

// The names under which the graphs' ops have measured times, sorted.
std::vector<std::string> measured_devices(std::span<const Graph* const> graphs);

// `start` with launch_us and curves fitted to the times that the graphs have under `device`. Throws
// an Error when there is none.
DeviceKind fit_curves(std::span<const Graph* const> graphs, std::string_view device,
                      const DeviceKind& start);

// A kind for hardware that nothing is known of: the best rates that were measured, a little raised,
// as peaks, and typical curves. Its memory is unlimited.
DeviceKind unknown_kind(std::span<const Graph* const> graphs, std::string_view device,
                        std::string name);

// Of one graph or one class: the ops that were measured, without views, and their time as measured
// and as the kind's curves say.
struct FitError {
  std::string name;
  std::int64_t ops = 0;
  double measured_us = 0;
  double fitted_us = 0;
  double op_error = 0;  // mean |fitted - measured| / measured of ops, weighted by measured time

  double total_error() const { return measured_us > 0 ? fitted_us / measured_us - 1 : 0; }
};

FitError graph_error(const Graph& graph, std::string_view device, const DeviceKind& kind);
std::vector<FitError> class_errors(std::span<const Graph* const> graphs, std::string_view device,
                                   const DeviceKind& kind);  // classes that occur, in order

// Each graph's error under curves that were fitted to all the others.
std::vector<FitError> leave_one_out(std::span<const Graph* const> graphs, std::string_view device,
                                    const DeviceKind& start);

}  // namespace emplace
