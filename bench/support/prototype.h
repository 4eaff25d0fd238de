// What the prototype of the latency search reached.
#pragma once

#include <optional>
#include <string_view>

namespace emplace::bench {

// In ms, on cluster "a", "b" or "c" (support/workloads.h), with exact evaluation, one core, 30 s of
// CPU time and one seed; nothing where it was not run. Updates of parameters, which were not
// measured, lasted 40 us each for it.
std::optional<double> prototype_ms(std::string_view graph, std::string_view cluster);

}  // namespace emplace::bench
