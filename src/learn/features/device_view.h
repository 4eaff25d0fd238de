// What policies for any number and kind of devices know of these, and of units on them. A policy
// may use all devices or some; each that it uses has a slice of every line through the graph
// (learn/units/coordinates.h), in proportion to its speed or to its memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "learn/features/features.h"
#include "learn/units/coordinates.h"
#include "learn/units/unit_graph.h"

namespace emplace::learn {

struct DeviceView {
  // Columns: docs/policies.md lists them.
  static constexpr std::int64_t kGraphColumns = 6;
  static constexpr std::int64_t kDeviceColumns = 8;
  // For each line, by time and by memory: how far the unit is from the middle of the slice, the
  // same without its sign, and whether it is within.
  static constexpr std::int64_t kSliceColumns = 3;
  static constexpr std::int64_t kPairColumns =
      1 + static_cast<std::int64_t>(kLines) * 2 * kSliceColumns;

  std::vector<DeviceId> used;  // ascending
  Matrix graph;                // [1, kGraphColumns]
  Matrix devices;              // [devices, kDeviceColumns]; 0 for those that are not used
  Matrix pairs;                // [units * devices, kPairColumns], likewise
  // [units * devices]: whether the unit may be there; where it may use none that is used, those
  // that it may.
  std::vector<std::uint8_t> allowed;

  // The column of `pairs` for a line: how far from the middle of the slice by time, without sign.
  static constexpr std::int64_t distance_column(Line line) {
    return 1 + static_cast<std::int64_t>(line) * 2 * kSliceColumns + 1;
  }
};

// Keeps a reference to the units.
class DeviceViews {
 public:
  explicit DeviceViews(const UnitGraph& units);

  // By unit: general_features (learn/features/features.h), and the places along the lines, also as
  // waves.
  Matrix unit_features() const;
  DeviceView of(std::span<const DeviceId> used) const;
  // The `count` fastest, the first of equals, ascending.
  std::vector<DeviceId> fastest(std::size_t count) const;
  const UnitGraph& units() const { return *units_; }
  const Coordinates& along(Line line) const { return lines_[static_cast<std::size_t>(line)]; }
  // Of the unit's ops on the device, and of all ops there; nanoseconds.
  double time(UnitId unit, DeviceId device) const {
    return time_[static_cast<std::size_t>(unit) * units_->num_devices() + device];
  }
  double total_time(DeviceId device) const { return total_time_[device]; }

 private:
  void describe_graph(DeviceView& view) const;
  void describe_devices(DeviceView& view) const;
  void describe_pairs(DeviceView& view) const;
  std::vector<double> speeds(std::span<const DeviceId> used) const;      // shares
  std::vector<double> capacities(std::span<const DeviceId> used) const;  // shares
  double capacity(DeviceId device) const;  // at most all that the graph keeps
  // Of moving the mean tensor over the mean link between these, in mean times of units.
  double exchange_cost(std::span<const DeviceId> used) const;

  const UnitGraph* units_;
  std::array<Coordinates, kLines> lines_;
  std::vector<double> time_;        // [unit * devices + device], ns
  std::vector<double> total_time_;  // by device
  double mean_time_ = 0;            // of a unit
  double longest_path_ = 0;
  double kept_ = 0;        // bytes, by all units
  double mean_bytes_ = 0;  // that a unit sends
};

}  // namespace emplace::learn
