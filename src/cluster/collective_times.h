// How long collectives were measured to take, by their bytes and by how many devices take part.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/units.h"

namespace emplace {

enum class Collective : std::uint8_t { kAllReduce, kReduceScatter, kAllGather };

std::string_view collective_name(Collective op);
std::optional<Collective> parse_collective(std::string_view name);

class CollectiveTimes {
 public:
  static constexpr int kAnyMachines = 0;

  // Among so many devices, on so many machines, of a tensor that has so many bytes in all (what
  // everybody has after a gathering, or before a reduction). Returns false where that is known.
  // kAnyMachines: it is not said on how many.
  bool add(Collective op, int devices, int machines, Bytes bytes, double microseconds);

  // In nanoseconds. Between two sizes that were measured, on the line that joins them; below the
  // smallest, as long as it; above the largest, at its bandwidth. Half of an all-reduce where that
  // alone was measured, of which reductions into parts and gatherings are the halves. Nothing for
  // other numbers of devices than were measured, nor of machines, where that number is said.
  std::optional<double> nanoseconds(Collective op, int devices, int machines, double bytes) const;

  bool empty() const { return curves_.empty(); }

 private:
  using Curve = std::map<Bytes, double>;  // microseconds
  std::optional<double> known(Collective op, int devices, int machines, double bytes) const;

  std::map<std::tuple<Collective, int, int>, Curve> curves_;
};

}  // namespace emplace
