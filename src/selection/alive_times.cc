#include "selection/alive_times.h"

#include <algorithm>
#include <utility>

namespace emplace {

AliveTimes maximal_alive_times(std::span<const AliveInterval> intervals) {
  // Ends come before begins at one time. A set is largest when the next event ends an interval of
  // it, and one has begun since the last end.
  struct Event {
    std::int64_t time;
    bool begins;
    std::size_t interval;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].begin >= intervals[i].end) continue;
    events.push_back({intervals[i].begin, true, i});
    events.push_back({intervals[i].end, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& x, const Event& y) {
    return std::pair(x.time, x.begins) < std::pair(y.time, y.begins);
  });
  AliveTimes result;
  result.spans.resize(intervals.size());
  bool begun = false;
  for (const Event& event : events) {
    if (event.begins) {
      result.spans[event.interval].begin = result.count;
      begun = true;
      continue;
    }
    if (begun) ++result.count;
    begun = false;
    result.spans[event.interval].end = result.count;
  }
  return result;
}

}  // namespace emplace
