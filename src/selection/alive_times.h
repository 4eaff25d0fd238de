// Which times matter: of the sets of intervals that are alive together, the largest ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace emplace {

// [begin, end) over the times that matter; empty where begin == end.
struct TimeSpan {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

struct AliveTimes {
  std::int32_t count = 0;
  std::vector<TimeSpan> spans;  // of each interval
};

struct AliveInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Times such that every set of intervals that are alive together is alive at one of them. Empty
// intervals stay empty; all others get at least one time.
AliveTimes maximal_alive_times(std::span<const AliveInterval> intervals);

}  // namespace emplace
