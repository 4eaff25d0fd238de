// How well a device's fitted curves tell its measured times, by graph and by class of ops.
#pragma once

#include <span>
#include <string>

#include "cost/fit.h"

namespace emplace {

// `measured`: the key of the times; `start`: what the curves were fitted from.
std::string fit_report(std::span<const Graph* const> graphs, const std::string& measured,
                       const DeviceKind& start, const DeviceKind& fitted);

}  // namespace emplace
