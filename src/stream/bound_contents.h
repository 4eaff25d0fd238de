// What one device of a class may hold in a stream whose period is within a limit. Items that no
// such device can hold apart are one unit, and what none can hold is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

#include "stream/bound_classes.h"
#include "stream/model.h"

namespace emplace {

// A device that holds some of `units` but not all, or any where there are members `outside`, adds
// `weight` to its load and `traffic` to the channels.
struct ContentNet {
  std::vector<std::uint32_t> units;  // ascending
  bool outside = false;
  Nanoseconds weight = 0;
  Nanoseconds traffic = 0;
};

struct ContentGraph {
  std::vector<std::vector<std::uint32_t>> items;  // by unit, ascending
  std::vector<Nanoseconds> time;
  std::vector<Bytes> memory;
  std::vector<ContentNet> nets;
  // By item: equal for those that are held together or not at all.
  std::vector<std::uint32_t> set_of;
  // Of the units: few nets should be open at once (bound_order.h).
  std::vector<std::uint32_t> order;

  std::uint32_t num_units() const { return static_cast<std::uint32_t>(items.size()); }
};

// At least the sum of the units' values in a content whose load is within the limit: the most when
// units may be cut.
double fractional_value(const ContentGraph& graph, const std::vector<std::int32_t>& values,
                        Nanoseconds limit);

// By class. Items that all other devices hold together or not at all are together here too. The
// units are in no special order.
std::vector<ContentGraph> find_contents(const StreamModel& model,
                                        const std::vector<DeviceClass>& classes, Nanoseconds limit);

}  // namespace emplace
