// Where units are along one line, from 0 to 1: what slices of a graph are cut by, and what policies
// for any graph know of a unit's place in it.
#pragma once

#include <vector>

#include "learn/units/unit_graph.h"

namespace emplace::learn {

// A unit's place along an order, as the share of the whole that comes before the middle of it.
struct Coordinates {
  std::vector<double> time;    // by unit: of all units' mean time
  std::vector<double> memory;  // likewise of what the step keeps in memory
};

// What a unit keeps in memory, about: what it holds for the whole step, what it writes for the
// backward pass, and part of what it writes in that; its largest output where there is none.
std::vector<double> kept_bytes(const UnitGraph& units);

enum class Line {
  kLocality,  // units that exchange much are near each other (learn/units/orders.h)
  kDepth,     // as they run, but what the backward pass and updates do is beside what it is for
  kModules,   // by modules in forward order; layers of recurrent networks one after the other
};
inline constexpr std::size_t kLines = 3;

// Every unit once.
std::vector<UnitId> order_along(const UnitGraph& units, Line line);

Coordinates coordinates_of(const UnitGraph& units, const std::vector<UnitId>& order,
                           const std::vector<double>& kept);

}  // namespace emplace::learn
